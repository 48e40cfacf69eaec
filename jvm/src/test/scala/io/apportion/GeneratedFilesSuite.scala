package io.apportion

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

class GeneratedFilesSuite extends AnyFunSuite {
  for (file <- GeneratedFiles.all)
    test(s"${file.name} matches the code (run make generated)") {
      assert(Files.readString(file.path) == file.content)
    }
}
