package io.apportion.rules

/**
 * An error that the user opted into with a setting. Only such errors may end a query that would run without Apportion.
 */
trait OptInError extends Throwable
