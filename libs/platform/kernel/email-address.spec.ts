import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  findEmailKey,
  findMailbox,
  findMailboxKey,
  findReadableAddress,
  getEmailKey,
  isEmailAddress,
  isSameAddress,
  normalizeEmailAddress,
} from './email-address.js';

describe('the e-mail key', () => {
  it.each([
    ['ANNA@Mail.Example', 'anna@mail.example'],
    ['ｖictim@ｇithub.com', 'victim@github.com'],
    ['victim＠github.com', 'victim@github.com'],
    ['victim@github．com', 'victim@github.com'],
    ['victim@github。com', 'victim@github.com'],
    ['victim@github｡com', 'victim@github.com'],
    ['\u202Avic\u00ADtim@git\u200Bhub.com\u202C', 'victim@github.com'],
    ['\u212Aelvin@\u212Aelvin.example', 'kelvin@kelvin.example'],
    ['mi\u017F\u017F@example.com', 'miss@example.com'],
    ['a@mi\u017Fs.example', 'a@miss.example'],
    ['a@müller.de', 'a@xn--mller-kva.de'],
    ['a@MU\u0308LLER.de', 'a@xn--mller-kva.de'],
    ['a@XN--MLLER-KVA.de', 'a@xn--mller-kva.de'],
    ['weiß@straße.example', 'weiß@xn--strae-oqa.example'],
    ['WEIẞ@example.com', 'weiß@example.com'],
    ['MARIOS.ΜΑΡΙΟΣ@example.com', 'marios.μαριοσ@example.com'],
    ['marios.μαριος@example.com', 'marios.μαριοσ@example.com'],
    ['JOSE\u0301@example.com', 'josé@example.com'],
    ['J\u030C@example.com', '\u01F0@example.com'],
    ["o'neil+tag@sub.example.com", "o'neil+tag@sub.example.com"],
  ])('of %j is %j', (address, key) => {
    expect(findEmailKey(address)).toBe(key);
    expect(findEmailKey(normalizeEmailAddress(address))).toBe(key);
    expect(findEmailKey(key)).toBe(key);
  });

  it.each([
    ['victim@gİthub.com', 'victim@github.com'],
    ['victim@gi\u0307thub.com', 'victim@github.com'],
    ['victim@gıthub.com', 'victim@github.com'],
    ['vİctim@github.com', 'victim@github.com'],
    ['vıctim@github.com', 'victim@github.com'],
    ['weiß@example.com', 'weiss@example.com'],
    ['a@faß.de', 'a@fass.de'],
    ['a.b@example.com', 'ab@example.com'],
    ['a+tag@example.com', 'a@example.com'],
    ['é@example.com', 'e@example.com'],
    ['\u0430@example.com', 'a@example.com'],
    ['a@ex\u0430mple.com', 'a@example.com'],
  ])('differs between %j and %j', (one, other) => {
    expect([isEmailAddress(one), isEmailAddress(other)]).toEqual([true, true]);
    expect(isSameAddress(one, other)).toBe(false);
  });

  it.each([
    'a@b',
    '@b.de',
    'a b@c.de',
    'a@b..de',
    'a@.b.de',
    'a@b.de.',
    'a@@b.de',
    'a@b@c.de',
    'a＠b@c.de',
    'a@1.2.3.4',
    'a@0x7f.1',
    'a@[::1].de',
    'a@example.com/evil',
    'a@℀.example',
    'a@%67ithub.com',
    'a@ex\tample.com',
    'a@example.com:25',
    'a@example.123',
    'a@xn--zzzz99999.com',
    'a@b.c\u0301\u200D\uFFFFd',
    `a@${'b'.repeat(64)}.de`,
    `${'x'.repeat(250)}@b.de`,
    '"a"@b.de',
    'group:a@b.de;',
    'a,b@c.de',
    'Anna <anna@b.de>',
    '',
  ])('does not exist for %j', (text) => {
    expect([findEmailKey(text), findMailbox(text)]).toEqual([undefined, undefined]);
    expect(isSameAddress(text, text)).toBe(false);
    expect(() => getEmailKey(text)).toThrow('no e-mail address');
  });

  it('does not exist for a text that takes long to normalize', () => {
    expect(findEmailKey(`a@${'\u0301'.repeat(100_000)}.de`)).toBeUndefined();
  });

  it('is the same for an address, its mailbox and the key itself', () => {
    const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(part, part, (local, name) => {
        const address = `${local}@${name}.example`;
        const key = findEmailKey(address);
        if (key === undefined) return;
        const mailbox = findMailbox(address) ?? '';
        expect(findEmailKey(key)).toBe(key);
        expect(findEmailKey(mailbox)).toBe(key);
        expect(mailbox.split('@')[1]).toBe(key.split('@')[1]);
        expect(findMailbox(normalizeEmailAddress(address))).toBe(mailbox);
        expect(key.split('@')[1]).toMatch(/^[\x21-\x7e]+$/);
      }),
      { numRuns: 500 },
    );
  });
});

describe('findReadableAddress', () => {
  it.each([
    ['Anna@xn--mller-kva.de', 'Anna@müller.de'],
    ['anna@MÜLLER.de', 'anna@müller.de'],
    ['no address', undefined],
  ])('maps %j to %j', (address, readable) => {
    expect(findReadableAddress(address)).toBe(readable);
  });
});

describe('findMailbox', () => {
  it.each([
    ['Anna.ÉCOLE@Müller.de', 'Anna.ÉCOLE@xn--mller-kva.de'],
    ['victim@gİthub.com', 'victim@xn--github-qyd.com'],
    ['ａnna@b。de', 'anna@b.de'],
    ['a@\u13A0.com', 'a@xn--58d.com'],
  ])('maps %j to %j', (address, mailbox) => {
    expect(findMailbox(address)).toBe(mailbox);
  });
});

describe('findMailboxKey', () => {
  it.each([
    ['ann@mail.example', 'ann@mail.example'],
    ['Ann@Mail.EXAMPLE', 'ann@mail.example'],
    ['ann+one@mail.example', 'ann@mail.example'],
    ['ann+one+two@mail.example', 'ann@mail.example'],
    ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
    ['ann@xn--bcher-kva.example', 'ann@xn--bcher-kva.example'],
    ['ａｎｎ＋one@mail.example', 'ann@mail.example'],
    ['+tag@mail.example', '@mail.example'],
    ['no address', 'no address'],
    ['', ''],
  ])('maps %j to %j', (address, key) => {
    expect(findMailboxKey(address)).toBe(key);
  });
});
