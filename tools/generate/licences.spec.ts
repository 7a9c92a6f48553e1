import { describe, expect, it } from '@jest/globals';
import { listLicences } from './licences.mjs';

const component = (licenses?: Parameters<typeof listLicences>[0]['components'][0]['licenses']) =>
  listLicences({ components: [{ name: 'a', version: '1.0.0', ...(licenses && { licenses }) }] });

describe('licences', () => {
  it.each([
    ['MIT', true],
    ['(BSD-3-Clause AND Apache-2.0)', true],
    ['GPL-3.0-only', false],
    ['(MIT OR GPL-3.0-only)', false],
    ['MIT WITH whatever', false],
    ['', false],
  ])('%s', (expression, allowed) => {
    expect(component([{ expression }])).toMatchObject([{ allowed }]);
  });

  it('are known by their id, and by nothing that a package calls its own', () => {
    expect(component([{ license: { id: 'ISC' } }])).toEqual([
      { line: 'a 1.0.0: ISC', allowed: true },
    ]);
    expect(component([{ license: { name: 'My licence' } }])).toMatchObject([{ allowed: false }]);
  });

  it('of several that are listed count together', () => {
    const licenses = [{ license: { id: 'MIT' } }, { license: { id: 'AGPL-3.0-only' } }];
    expect(component(licenses)).toEqual([
      { line: 'a 1.0.0: MIT AND AGPL-3.0-only', allowed: false },
    ]);
  });

  it('are reported as missing when a package states none', () => {
    expect(component()).toEqual([{ line: 'a 1.0.0: none', allowed: false }]);
  });

  it.each([
    ['@img/sharp-libvips-linux-x64', 'LGPL-3.0-or-later', true],
    ['@img/sharp-libvips-linux-x64', 'GPL-3.0-only', false],
    ['@img/sharp-libvips-linux-x64', 'none', false],
    ['another', 'LGPL-3.0-or-later', false],
    ['x-@img/sharp-libvips-linux-x64', 'LGPL-3.0-or-later', false],
  ])('of %s may be %s: %s', (name, id, allowed) => {
    const components = [{ name, version: '1.0.0', licenses: [{ license: { id } }] }];
    expect(listLicences({ components })).toMatchObject([{ allowed }]);
  });

  it('are sorted by package', () => {
    const components = ['b', 'a'].map((name) => ({ name, version: '1.0.0' }));
    expect(listLicences({ components }).map(({ line }) => line)).toEqual([
      'a 1.0.0: none',
      'b 1.0.0: none',
    ]);
  });
});
