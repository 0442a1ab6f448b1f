/**
 * Something an admin has to put right before this process can do anything: one line that says what is wrong, where,
 * and what to do. Commands print the message alone, without a stack trace.
 */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}
