import { InvalidFieldsError } from '#kernel/errors.js';

export function createFileError(message: string): InvalidFieldsError {
  return new InvalidFieldsError({ base: [message] });
}
