package io.apportion

/** An error that somebody asked for by a setting: it alone may end a query that would have run without Apportion. */
trait AskedFor extends Throwable
