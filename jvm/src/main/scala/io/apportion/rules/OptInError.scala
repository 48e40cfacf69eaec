package io.apportion.rules

/** An error that somebody asked for by a setting: it alone may end a query that would have run without Apportion. */
trait OptInError extends Throwable
