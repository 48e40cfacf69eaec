package org.apache.spark.apportion.ui

/** Servlets of Spark's UI: Java EE before Spark 4, Jakarta EE since Spark 4. */
private[ui] object Servlet {
  type Request = jakarta.servlet.http.HttpServletRequest
}
