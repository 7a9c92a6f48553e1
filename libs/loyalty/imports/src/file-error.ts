import { InvalidFieldsError } from '#kernel/errors.js';
import type { Issue } from '#kernel/issues.js';

export function createFileError(issue: Issue): InvalidFieldsError {
  return new InvalidFieldsError({ base: [issue] });
}
