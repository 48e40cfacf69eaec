package io.apportion.sizing

import io.apportion.decision.ByteInterval

/**
 * Why an exchange has its number of shuffle partitions.
 *
 * @param kind  `estimate`, `history`, `spark` (its own number) or `same-shuffle` (the number of an equal shuffle); event logs have it
 * @param text  the same for people
 * @param bytes the bytes that the number was chosen for, if it was chosen by bytes
 */
private[apportion] final case class PartitionsReason(kind: String, text: String, bytes: Option[ByteInterval] = None)
