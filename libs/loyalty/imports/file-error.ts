import { InvalidFieldsError } from '#platform/kernel/errors.js';
import type { Issue } from '#platform/kernel/issues.js';

export function createFileError(issue: Issue): InvalidFieldsError {
  return new InvalidFieldsError({ base: [issue] });
}
