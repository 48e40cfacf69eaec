package org.apache.spark.apportion.ui

import scala.xml.{Elem, Node}

import io.apportion.decision.Sentence
import io.apportion.decision.ranges.Bytes

/**
 * A stage of a query, with all its attempts.
 *
 * @param read    bytes read from sources and shuffles
 * @param written bytes written to shuffles and files
 * @param spilled bytes spilled to disk
 * @param millis  time that the tasks ran
 * @param parents ids of the stages whose shuffles it reads, as far as they ran for this query
 */
private[ui] final case class RanStage(
    id: Int,
    tasks: Int,
    read: Long,
    written: Long,
    spilled: Long,
    millis: Long,
    parents: Seq[Int]
)

/**
 * Draws the stages of a query from left to right: a stage is to the right of all stages that it reads.
 *
 * @param name what a stage does, by its id, if it is known
 * @param link address of the page of a stage, by its id
 */
private[ui] final class StageGraph(all: Seq[RanStage], name: Int => Option[String], link: Int => String) {
  import StageGraph._

  /** The stages whose tasks ran longest, in the order of their ids. */
  private val stages = all.sortBy(-_.millis).take(MostStages).sortBy(_.id)

  /** Left upper corner of each stage on a wide screen. A stage has a larger id than the stages that it reads. */
  private val wide: Map[Int, (Int, Int)] = {
    val columns = stages.foldLeft(Map.empty[Int, Int]) { (known, stage) =>
      known.updated(stage.id, stage.parents.flatMap(known.get).map(_ + 1).maxOption.getOrElse(0))
    }
    stages.groupBy(stage => columns(stage.id)).flatMap { case (column, inColumn) =>
      inColumn.zipWithIndex.map { case (stage, row) =>
        stage.id -> ((Margin + column * (Width + Gap), Margin + row * (Height + Gap / 2)))
      }
    }
  }

  /** The same on a narrow screen, from top to bottom. */
  private val narrow: Map[Int, (Int, Int)] = stages.zipWithIndex.map { case (stage, row) =>
    stage.id -> ((Margin + Gap, Margin + row * (Height + Gap / 2)))
  }.toMap

  def svg: Seq[Node] =
    if (stages.isEmpty) Nil
    else {
      val left =
        if (all.size > stages.size) s" The graph has the $MostStages of ${all.size} stages that ran longest." else ""
      <figure class="apportion-stages">
        <div class="apportion-wide" tabindex="0">{drawing(wide, curve)}</div>
        <div class="apportion-narrow">{drawing(narrow, rail)}</div>
        <figcaption>{s"Stages with their tasks and bytes.$left"}</figcaption>
      </figure>
    }

  private def drawing(places: Map[Int, (Int, Int)], path: (Int, Int, Int, Int) => String): Elem = {
    val width = places.values.map(_._1).max + Width + Margin
    val height = places.values.map(_._2).max + Height + Margin
    val arrows = for (stage <- stages; parent <- stage.parents.distinct; (fromX, fromY) <- places.get(parent)) yield {
      val (x, y) = places(stage.id)
      val line = s"${path(fromX, fromY + Height / 2, x, y + Height / 2)}m-6 -4l6 4l-6 4"
      <path d={line} fill="none" stroke="currentColor" stroke-opacity="0.6"/>
    }
    <svg viewBox={s"0 0 $width $height"} style={
      s"width: 100%; max-width: ${width}px; min-width: ${width.min(width / 4 + 200)}px"
    } role="group" aria-label="Stages" font-size="12">{
      arrows ++ stages.map(stage => box(stage, places(stage.id)))
    }</svg>
  }

  private def curve(fromX: Int, fromY: Int, x: Int, y: Int): String = {
    val middle = x - Gap / 2
    s"M${fromX + Width} ${fromY}C$middle $fromY $middle $y $x $y"
  }

  private def rail(fromX: Int, fromY: Int, x: Int, y: Int): String =
    s"M$fromX ${fromY}H${(x - 8 - (y - fromY) / 30).max(2)}V${y}H$x"

  private def box(stage: RanStage, place: (Int, Int)): Elem = {
    val (x, y) = place
    val moved = Seq(stage.read -> "in", stage.written -> "out").collect {
      case (size, direction) if size > 0 => s"${Bytes.text(size)} $direction"
    }
    val spilled = if (stage.spilled > 0) Seq(s"▲ ${Bytes.text(stage.spilled)} spilled") else Nil
    val lines = Seq(s"stage ${stage.id}, ${Sentence.count(stage.tasks.toLong, "task")}") ++ name(stage.id) ++
      Seq(moved.mkString(", ")).filter(_.nonEmpty) ++ spilled
    <a href={link(stage.id)}>
      <title>{lines.mkString("\n")}</title>
      <rect x={x.toString} y={y.toString} width={Width.toString} height={Height.toString} rx="4" fill={
      RangesPlot.Shades.head
    } fill-opacity="0.12" stroke="currentColor" stroke-opacity="0.4"/>
      {
      lines.zipWithIndex.map { case (line, row) =>
        <text x={(x + 8).toString} y={(y + 16 + row * Line).toString} fill="currentColor">{shortened(line)}</text>
      }
    }
    </a>
  }

  private def shortened(line: String): String =
    if (line.length <= MostLetters) line else s"${line.take(MostLetters - 1)}…"
}

private object StageGraph {

  /** Maximum number of stages in the graph of a query. */
  private val MostStages = 40
  private val MostLetters = 27
  private val Width = 200
  private val Height = 72
  private val Line = 16
  private val Gap = 32
  private val Margin = 4
}
