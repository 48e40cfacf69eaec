package io.apportion.history

import java.net.URI
import java.nio.file.Files
import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{
  FSDataInputStream,
  FSDataOutputStream,
  FileStatus,
  Path,
  RawLocalFileSystem,
  RemoteIterator
}
import org.apache.hadoop.security.UserGroupInformation
import org.apache.hadoop.util.Progressable

/**
 * Local files as `gated:/path`, which answers only while its gate is open, and keeps what it is asked for. Other
 * applications may write a file at the moment when it is deleted.
 */
final class GatedFileSystem extends RawLocalFileSystem {
  import GatedFileSystem._

  override def getScheme: String = Scheme
  override def getUri: URI = URI.create(s"$Scheme:///")

  override def initialize(uri: URI, conf: Configuration): Unit = {
    super.initialize(uri, conf)
    calls.add(s"initialize as ${UserGroupInformation.getCurrentUser.getShortUserName} with ${conf.get("gated.token")}")
  }

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    pass(s"open ${path.getName}")
    super.open(path, bufferSize)
  }

  override def listStatusIterator(path: Path): RemoteIterator[FileStatus] = {
    pass("list")
    super.listStatusIterator(path)
  }

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream = {
    pass(s"create ${path.getName}")
    super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)
  }

  override def rename(from: Path, to: Path): Boolean = {
    pass(s"rename to ${to.getName}")
    // As HDFS does.
    !exists(to) && super.rename(from, to)
  }

  override def delete(path: Path, recursive: Boolean): Boolean = {
    val isDeleted = super.delete(path, recursive)
    Option(rivals.poll()).foreach(text => Files.writeString(pathToFile(path).toPath, text))
    isDeleted
  }

  override def close(): Unit = {
    calls.add("close")
    super.close()
  }
}

object GatedFileSystem {
  val Scheme = "gated"
  val calls = new ConcurrentLinkedQueue[String]

  /** Contents that other applications write, each at the moment when a file is deleted. */
  val rivals = new ConcurrentLinkedQueue[String]
  @volatile private var gate = new CountDownLatch(0)

  /** Nothing answers during the body, not even when it is interrupted. */
  def closed[T](body: => T): T = {
    gate = new CountDownLatch(1)
    try body
    finally gate.countDown()
  }

  private def pass(call: String): Unit = {
    calls.add(call)
    val mine = gate
    var waits = true
    while (waits)
      try {
        mine.await()
        waits = false
      } catch { case _: InterruptedException => }
  }
}
