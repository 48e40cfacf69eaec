import java.io.{File, FileOutputStream}
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.util.zip.{ZipEntry, ZipFile, ZipOutputStream}

import scala.collection.JavaConverters._

import org.objectweb.asm.{AnnotationVisitor, Attribute, ClassReader, ClassVisitor, ClassWriter, Opcodes}

/**
 * A jar to run, without what only a Scala compiler reads: signatures are a quarter of its bytes. A compiler takes the classes
 * for those of Java.
 */
object RuntimeJar {

  def write(jar: File, to: File): File = {
    val classes = new ZipFile(jar)
    val out = new ZipOutputStream(new FileOutputStream(to))
    try
      classes.entries.asScala.foreach { entry =>
        val copy = new ZipEntry(entry.getName)
        copy.setTime(entry.getTime)
        out.putNextEntry(copy)
        val bytes = classes.getInputStream(entry).readAllBytes()
        out.write(if (entry.getName.endsWith(".class")) withoutSignature(bytes) else bytes)
      }
    finally {
      out.close()
      classes.close()
    }
    to
  }

  /** In classes that Jackson reads. It asks for a signature to tell classes of Scala. */
  private val JacksonAnnotation = "Lcom/fasterxml/jackson/annotation/"

  private def withoutSignature(bytes: Array[Byte]): Array[Byte] =
    if (new String(bytes, ISO_8859_1).contains(JacksonAnnotation)) bytes
    else {
      val writer = new ClassWriter(0)
      val visitor = new ClassVisitor(Opcodes.ASM9, writer) {
        override def visitAnnotation(kind: String, visible: Boolean): AnnotationVisitor =
          if (kind.startsWith("Lscala/reflect/Scala")) null else super.visitAnnotation(kind, visible)
        override def visitAttribute(attribute: Attribute): Unit =
          if (!attribute.`type`.startsWith("Scala")) super.visitAttribute(attribute)
      }
      new ClassReader(bytes).accept(visitor, 0)
      writer.toByteArray
    }
}
