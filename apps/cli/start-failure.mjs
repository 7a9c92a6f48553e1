/** Reports something the user can fix: shown as it is, without a stack trace. */
export class StartFailure extends Error {}

/** @returns {string | null} null for a bug of our own, which cannot be found without its stack */
export function describeInOneSentence(error) {
  if (error instanceof StartFailure) return error.message;
  const { code, message } = error;
  if (['ENOSPC', 'EDQUOT'].includes(code)) return `No space is left on the disk (${message}).`;
  if (['EACCES', 'EPERM', 'EROFS'].includes(code)) return `Not permitted: ${message}.`;
  return null;
}
