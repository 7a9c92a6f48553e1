/** Licences that require no more than attribution, and combinations of them, as packages write them. */
const ALLOWED = new Set([
  '(BSD-3-Clause AND Apache-2.0)',
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
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
  { name: /^@fontsource(-variable)?\/noto-[a-z0-9-]+$/, licence: 'OFL-1.1' },
  // Asks for attribution only; of the command line of wawoff2, which is not used.
  { name: /^argparse$/, licence: 'Python-2.0' },
  // Either of the two, at our choice; of imapflow.
  { name: /^@zone-eu\/mailsplit$/, licence: '(MIT OR EUPL-1.1+)' },
  // It names no licence in its description, but has that of the MIT in its file LICENSE.
  { name: /^png-js$/, licence: 'none' },
];

/**
 * Lists the licences of the components of a CycloneDX document, by name, and whether they are allowed.
 * @param {{ components: { name: string, version: string,
 *   licenses?: { expression?: string, license?: { id?: string, name?: string } }[] }[] }} document
 */
export function listLicences({ components }) {
  return components
    .map(({ name, version, licenses = [] }) => {
      const named = licenses.map(
        ({ expression, license }) => expression ?? license?.id ?? license?.name ?? 'none',
      );
      const licence = named.join(' AND ') || 'none';
      return {
        line: `${name} ${version}: ${licence}`,
        allowed: ALLOWED.has(licence) || isException(name, licence),
      };
    })
    .sort((a, b) => (a.line < b.line ? -1 : 1));
}

function isException(packageName, license) {
  return EXCEPTIONS.some(({ name, licence }) => name.test(packageName) && licence === license);
}
