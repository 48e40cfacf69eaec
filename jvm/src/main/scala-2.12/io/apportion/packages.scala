// Every package has these methods, so that the shared sources need no imports for Scala 2.12.

package io.apportion {
  package object decision extends Scala213
  package object groups extends Scala213
  package object hints extends Scala213
  package object history extends Scala213
  package object joins extends Scala213
  package object keys extends Scala213
  package object memory extends Scala213
  package object outcomes extends Scala213
  package object policies extends Scala213
  package object reads extends Scala213
  package object report extends Scala213
  package object resources extends Scala213
  package object rules extends Scala213
  package object scans extends Scala213
  package object settings extends Scala213
  package object shufflewrites extends Scala213
  package object streams extends Scala213
  package object util extends Scala213
  package object writes extends Scala213

  package decision {
    package object memory extends Scala213
    package object ranges extends Scala213
  }

  package resources {
    package object deadlines extends Scala213
    package object planned extends Scala213
  }

  package writes {
    package object statements extends Scala213
  }
}

package org.apache.spark {
  import _root_.io.apportion.Scala213

  package object apportion extends Scala213

  package apportion {
    package object ui extends Scala213
  }

  package sql {
    package object apportion extends Scala213

    package apportion {
      package object exchange extends Scala213

      package exchange {
        package object writer extends Scala213
      }
    }
  }
}
