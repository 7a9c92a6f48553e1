/**
 * Licences that require no more than attribution. A package that offers one of several needs only one of these; one
 * that combines several needs all of them.
 */
const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'PostgreSQL',
  'Python-2.0',
  'Unlicense',
]);

/**
 * Packages under other licences, each for a reason: libvips is a shared library of its own, which operators may replace
 * with one that they have built (LGPL-3.0, section 4). Fonts under the OFL may be shipped with anything, and embedded in
 * documents, as long as nobody sells them alone. See NOTICE.
 */
const EXCEPTIONS = [
  { name: /^@img\/sharp-libvips-[a-z0-9-]+$/, licence: 'LGPL-3.0-or-later' },
  { name: /^@expo-google-fonts\/inter$/, licence: 'MIT AND OFL-1.1' },
  // It names no licence in its description, but has that of the MIT in its file LICENSE.
  { name: /^png-js$/, licence: 'none' },
];

/** @returns {{ line: string, allowed: boolean }[]} of the components of a CycloneDX document, by name */
export function listLicences({ components }) {
  return components
    .map(({ name, version, licenses = [] }) => {
      const named = licenses.map(
        ({ expression, license }) => expression ?? license?.id ?? license?.name ?? 'none',
      );
      const licence = named.join(' AND ') || 'none';
      return {
        line: `${name} ${version}: ${licence}`,
        allowed: isAllowed(licence) || isException(name, licence),
      };
    })
    .sort((a, b) => (a.line < b.line ? -1 : 1));
}

function isException(packageName, license) {
  return EXCEPTIONS.some(({ name, licence }) => name.test(packageName) && licence === license);
}

/** Tells whether an SPDX expression is allowed. AND binds more tightly than OR. */
function isAllowed(expression) {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const either = () => {
    let allowed = both();
    while (tokens[at] === 'OR') {
      at++;
      const other = both();
      allowed ||= other;
    }
    return allowed;
  };
  const both = () => {
    let allowed = one();
    while (tokens[at] === 'AND') {
      at++;
      const other = one();
      allowed &&= other;
    }
    return allowed;
  };
  const one = () => {
    const token = tokens[at++];
    if (token !== '(') return ALLOWED.has(token);
    const allowed = either();
    return tokens[at++] === ')' && allowed;
  };
  const allowed = either();
  // Anything left over, such as `WITH` an exception, has not been checked.
  return at === tokens.length && allowed;
}
