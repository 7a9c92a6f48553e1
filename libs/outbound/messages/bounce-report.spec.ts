import { describe, expect, it } from '@jest/globals';
import { isComplaintAbout, isReportPart, parseReport, type MailPart } from './bounce-report.js';

const ID = '01a227bb-465a-7336-854a-095affb153e3';
const lines = (...texts: string[]) => texts.join('\r\n');
const status = (...texts: string[]): MailPart => ({
  type: 'message/delivery-status',
  text: lines(...texts),
});
const returned: MailPart = {
  type: 'message/rfc822',
  text: lines('From: shop@shop.example', `Message-ID: <${ID}@shop.example>`, 'To: a@x.example', ''),
};
const bounced = (address: string, code: string) => ({
  messageIds: [ID],
  bounces: [{ address, status: code }],
  complaint: null,
});

const parseParts = (parts: MailPart[], head = '') => parseReport({ head, parts });

describe('parseReport', () => {
  it('reads a report of Postfix, which returns the head as text', () => {
    const report = status(
      'Reporting-MTA: dns; mx.shop.example',
      'X-Postfix-Queue-ID: 4F1D22C0A1',
      'Arrival-Date: Mon,  2 Mar 2026 10:00:00 +0100 (CET)',
      '',
      'Final-Recipient: rfc822; anna@x.example',
      'Original-Recipient: rfc822;anna@x.example',
      'Action: failed',
      'Status: 5.1.1',
      'Remote-MTA: dns; mail.x.example',
      'Diagnostic-Code: smtp; 550 5.1.1 <anna@x.example>: no such user',
      '    here',
    );
    const head = { type: 'text/rfc822-headers', text: `Subject: Hi\nMessage-Id:\n <${ID}@x>\n` };
    expect(parseParts([{ type: 'text/plain', text: '' }, report, head])).toEqual(
      bounced('anna@x.example', '5.1.1'),
    );
  });

  it('reads a report of Exim, whose code is that of the other server', () => {
    const report = status(
      'Reporting-MTA: dns; mx.shop.example',
      '',
      'Action: failed',
      'Final-Recipient: rfc822;anna@x.example',
      'Status: 5.0.0',
      'Remote-MTA: dns; mail.x.example',
      'Diagnostic-Code: smtp; 550-5.2.1 This mailbox is disabled',
    );
    expect(parseParts([report, returned])).toEqual(bounced('anna@x.example', '5.2.1'));
  });

  it('reads a report of Exchange', () => {
    const report = status(
      'Reporting-MTA: dns;EX1.corp.example',
      'Received-From-MTA: dns;mx.shop.example',
      'Arrival-Date: Mon, 2 Mar 2026 09:00:00 +0000',
      '',
      'Final-Recipient: rfc822;Anna@X.example',
      'Action: failed',
      'Status: 5.1.10',
      'Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; not found by lookup',
      'X-Display-Name: Anna',
    );
    expect(parseParts([report, returned])).toEqual(bounced('Anna@X.example', '5.1.10'));
  });

  it('reads a report of Google', () => {
    const report = status(
      'Reporting-MTA: dns; googlemail.com',
      'Received-From-MTA: dns; shop@shop.example',
      'Arrival-Date: Mon, 02 Mar 2026 01:00:00 -0800 (PST)',
      '',
      'Final-Recipient: rfc822; anna@x.example',
      'Action: failed',
      'Status: 5.1.2',
      'Diagnostic-Code: smtp; Domain name not found',
      'Last-Attempt-Date: Mon, 02 Mar 2026 01:00:01 -0800 (PST)',
    );
    expect(parseParts([report, returned])).toEqual(bounced('anna@x.example', '5.1.2'));
  });

  it('reads a report in UTF-8 (RFC 6533)', () => {
    const report = {
      type: 'message/global-delivery-status',
      text: 'Final-Recipient: utf-8; ünal@x.example\nAction: failed\nStatus: 5.1.1\n',
    };
    const head = { type: 'message/global-headers', text: returned.text };
    expect(parseParts([report, head])).toEqual(bounced('ünal@x.example', '5.1.1'));
  });

  it.each([
    ['a delay', 'delayed', '4.4.1'],
    ['a delivery', 'delivered', '2.0.0'],
    ['a failure without a code', 'failed', ''],
    ['a temporary failure', 'failed', '4.2.2'],
  ])('finds no bounce in the report of %s', (_, action, code) => {
    const fields = ['Final-Recipient: rfc822; a@x.example', `Action: ${action}`, `Status: ${code}`];
    expect(parseParts([status(...fields), returned])?.bounces).toEqual([]);
  });

  it('reads a complaint, with or without the address', () => {
    const complain = (...more: string[]): MailPart => ({
      type: 'message/feedback-report',
      text: lines('Feedback-Type: abuse', 'User-Agent: Some/1.0', 'Version: 1', ...more),
    });
    const address = 'Original-Rcpt-To: <anna@x.example>';
    const find = (part: MailPart) => parseParts([part, returned])?.complaint;
    expect(find(complain(address))).toEqual({ address: 'anna@x.example' });
    expect(find(complain())).toEqual({ address: null });
    const other = { ...complain(), text: 'Feedback-Type: not-spam' };
    expect(find(other)).toBeNull();
  });

  it('reads nothing in other mails, nor in reports about mails that have no id of ours', () => {
    expect(parseParts([returned])).toBeUndefined();
    const report = status('Final-Recipient: rfc822; a@x.example', 'Status: 5.1.1');
    expect(parseParts([report])).toBeUndefined();
    for (const id of ['<1@shop.example>', ID, `<${ID}>`, `<x${ID}@shop.example>`, '']) {
      const text = `Message-ID: ${id}\n`;
      expect(parseParts([report, { type: 'message/rfc822', text }])).toBeUndefined();
    }
  });

  const failed = status(
    'Final-Recipient: rfc822; anna@x.example',
    'Action: failed',
    'Status: 5.1.1',
  );
  const SES = '0100019abcdef012-5b0f4f16-4b8f-4f0e-8c1e-5c8c8e8e8e8e-000000';
  it.each([
    [
      'Amazon SES, with the headers of the e-mail',
      [
        `Return-Path: <${SES}@eu-west-1.amazonses.com>`,
        `Message-ID: <${SES}@eu-west-1.amazonses.com>`,
        `X-Inkpad-Message: ${ID}`,
      ],
    ],
    [
      'Microsoft 365',
      [
        'Message-ID: <AM0PR01MB1234@AM0PR01MB1234.eurprd01.prod.exchangelabs.com>',
        `X-Microsoft-Original-Message-ID:`,
        ` <${ID}@shop.example>`,
      ],
    ],
    [
      'Gmail',
      [
        'Message-ID: <65f1c2a3.050a0220.1234.abcd@mx.google.com>',
        `X-Google-Original-Message-ID: <${ID}@shop.example>`,
      ],
    ],
    ['a relay that keeps only fields of others', [`x-inkpad-message: ${ID.toUpperCase()}`]],
    ['a relay that returns the envelope sender', [`Return-Path: <bounces+${ID}@shop.example>`]],
  ])('recognizes an e-mail of ours behind %s', (_, head) => {
    const text = lines('From: shop@shop.example', ...head, 'To: anna@x.example', '');
    const report = parseParts([failed, { type: 'message/rfc822', text }]);
    expect(report?.messageIds).toContain(ID);
    expect(report?.bounces).toHaveLength(1);
  });

  it.each([
    ['To', `bounces+${ID}@shop.example`],
    ['To', `"Mail" <${ID}@bounces.shop.example>`],
    ['Delivered-To', `bounces-${ID}@shop.example`],
    ['X-Original-To', `SRS0=hash=tt=shop.example=bounces+${ID}@relay.example`],
    ['Envelope-To', `prvs=0123456789=bounces+${ID}@shop.example`],
    ['X-Forwarded-To', `bounces+${ID}=x@shop.example`],
  ])('recognizes an e-mail by the address that its report went to: %s: %s', (name, address) => {
    const head = lines('From: mailer-daemon@x.example', `${name}: ${address}`, '');
    expect(parseParts([failed], head)).toEqual(bounced('anna@x.example', '5.1.1'));
    const foreign = { type: 'message/rfc822', text: `Message-ID: <${SES}@email.amazonses.com>\n` };
    expect(parseParts([failed, foreign], head)?.messageIds).toContain(ID);
  });

  it('recognizes an e-mail by the envelope sender that a complaint names', () => {
    const complaint = {
      type: 'message/feedback-report',
      text: lines('Feedback-Type: abuse', `Original-Mail-From: <bounces+${ID}@shop.example>`),
    };
    expect(parseParts([complaint])).toMatchObject({ messageIds: [ID], complaint: {} });
  });

  it.each([
    ['no type', 'sam@x.example', 'failed'],
    ['no type, in brackets', '<sam@x.example>', 'failed'],
    ['another type', 'smtp; sam@x.example', 'failed'],
    ['a comment in the address', 'rfc822; sam@x.example (Sam)', 'failed'],
    ['a comment in the action', 'rfc822; sam@x.example', 'failed (bad destination mailbox)'],
    ['a comment before the action', 'rfc822; sam@x.example', '(bad) Failed'],
    ['a point after the action', 'rfc822; sam@x.example', 'failed.'],
  ])('reads a recipient with %s', (_, recipient, action) => {
    const fields = [`Final-Recipient: ${recipient}`, `Action: ${action}`, 'Status: 5.1.1 (bad)'];
    expect(parseParts([status(...fields), returned])).toEqual(bounced('sam@x.example', '5.1.1'));
  });

  it('reads a diagnostic code without its type, and none of another type', () => {
    const read = (code: string) =>
      parseParts([
        status(
          'Final-Recipient: rfc822; a@x.example',
          'Action: failed',
          'Status: 5.0.0',
          `Diagnostic-Code: ${code}`,
        ),
        returned,
      ])?.bounces[0]?.status;
    expect(read('550 5.1.1 no such user')).toBe('5.1.1');
    expect(read('SMTP; 550 5.1.1 no such user')).toBe('5.1.1');
    expect(read('x-unix; 5.1.1')).toBe('5.0.0');
  });

  it('reads an address in ASCII that stands for one in UTF-8 (RFC 6533)', () => {
    const fields = [
      String.raw`Final-Recipient: utf-8; j\x{FC}rgen@x.example`,
      'Action: failed',
      'Status: 5.1.1',
    ];
    expect(parseParts([status(...fields), returned])).toEqual(bounced('jürgen@x.example', '5.1.1'));
  });

  it('takes the id of the returned mail from its head only', () => {
    const text = `Subject: Hi\n\nMessage-ID: <${ID}@shop.example>\n`;
    expect(parseParts([status('Status: 5.1.1'), { type: 'message/rfc822', text }])).toBeUndefined();
  });

  it('reads ten recipients at most of however long a report', () => {
    const group = 'Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.1.1\n\n';
    const part = { type: 'message/delivery-status', text: group.repeat(500) };
    expect(parseParts([part, returned])?.bounces).toHaveLength(10);
  });
});

it.each([
  ['that is theirs', 'anna@x.example', true],
  ['in another notation', 'ANNA@X.example', true],
  ['that hides the name', '####@x.example', true],
  ['that hides the name by a hash', 'c9a2b3f0d1e2@x.example', true],
  ['that hides everything', '####@####', true],
  ['that hides the domain', 'redacted@redacted.invalid', true],
  ['that is missing', null, true],
  ['elsewhere', 'anna@y.example', false],
])(
  'a complaint is about an e-mail whose recipient it names by an address %s: %s',
  (_, address, expected) => {
    expect(isComplaintAbout({ address }, 'anna@x.example')).toBe(expected);
  },
);

it.each([
  ['message/delivery-status', true],
  ['text/rfc822-headers', true],
  ['message/partial', false],
  ['text/html', false],
])('needs the part %s for a report: %s', (type, expected) => {
  expect(isReportPart(type)).toBe(expected);
});

it('parseReport reads long fields of strangers without delay', () => {
  const long = '@'.repeat(64_000);
  const report = status('', `Final-Recipient: rfc822;${long} x`, 'Action: failed');
  const complaint = {
    type: 'message/feedback-report',
    text: `Feedback-Type: abuse\nOriginal-Rcpt-To: ${long} x`,
  };
  expect(parseParts([report, complaint, returned])).toEqual({
    messageIds: [ID],
    bounces: [],
    complaint: { address: null },
  });
});
