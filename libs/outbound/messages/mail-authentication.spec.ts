import { expect, it } from '@jest/globals';
import { isAligned, parseAuthentication } from './mail-authentication.js';

const head = (...lines: string[]) => [...lines, 'Subject: Hi', ''].join('\r\n');

it('reads the results of the topmost server, and nothing that the sender wrote below', () => {
  const results = parseAuthentication(
    head(
      'Authentication-Results: mx.shop.example;',
      '\tdkim=pass (2048-bit key) header.d=shop.example header.s=s1;',
      '\tspf=pass (sender IP is 192.0.2.1) smtp.mailfrom=bounces@mail.shop.example;',
      '\tdmarc=pass (p=NONE) header.from=shop.example',
      'Authentication-Results: evil.example; dkim=pass header.d=evil.example',
      'DKIM-Signature: v=1; a=rsa-sha256; d=shop.example; s=s1;',
      ' h=From : To:List-Unsubscribe:List-Unsubscribe-Post; bh=x; b=y',
    ),
  );
  expect(results).toEqual({
    dkim: ['shop.example'],
    spf: 'mail.shop.example',
    dmarc: 'pass',
    signedHeaders: new Map([
      ['shop.example', ['from', 'to', 'list-unsubscribe', 'list-unsubscribe-post']],
    ]),
  });
});

it('finds no result in one that failed, and tells the domain of an identity', () => {
  const results = parseAuthentication(
    head(
      'Authentication-Results: mx.shop.example; dkim=fail header.d=shop.example;',
      ' dkim=pass header.i=@relay.example; spf=softfail smtp.mailfrom=a@shop.example',
    ),
  );
  expect(results).toMatchObject({ dkim: ['relay.example'], spf: null, dmarc: null });
  expect(parseAuthentication(head('From: a@shop.example'))).toBeUndefined();
});

it.each([
  ['shop.example', 'Shop.example', true],
  ['mail.shop.example', 'shop.example', true],
  ['shop.example', 'news.shop.example', true],
  ['relay.example', 'shop.example', false],
  ['myshop.example', 'shop.example', false],
])('tells whether %s is aligned with %s', (one, other, expected) => {
  expect(isAligned(one, other)).toBe(expected);
});
