const DESCRIPTIONS = new Map([
  ['EACCES', 'permission denied'],
  ['EPERM', 'not permitted'],
  ['EROFS', 'the file system is read-only'],
  ['ENOSPC', 'no space is left on the disk'],
  ['EDQUOT', 'the disk quota is used up'],
  ['ENOENT', 'it does not exist'],
  ['ENOTDIR', 'a part of its path is not a folder'],
  ['EISDIR', 'it is a folder'],
  ['EEXIST', 'there is something else in its place'],
  ['ENAMETOOLONG', 'its name is too long'],
  ['ELOOP', 'its links go round in a circle'],
]);

/** Describes why a file or folder cannot be used; undefined for any other error. */
export function describeFileError(error: unknown): string | undefined {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  const description = DESCRIPTIONS.get(code);
  return description && `${description} (${code})`;
}
