package org.apache.spark.apportion.ui

/** Spark's UI has the servlets of Java EE before Spark 4, and those of Jakarta EE from then on. */
private[ui] object Servlet {
  type Request = jakarta.servlet.http.HttpServletRequest
}
