import { describe, expect, it } from '@jest/globals';
import { isReportPart, parseReport, type MailPart } from './bounce-report.js';

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
  messageId: ID,
  bounces: [{ address, status: code }],
  complaint: null,
});

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
    expect(parseReport([{ type: 'text/plain', text: '' }, report, head])).toEqual(
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
    expect(parseReport([report, returned])).toEqual(bounced('anna@x.example', '5.2.1'));
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
    expect(parseReport([report, returned])).toEqual(bounced('Anna@X.example', '5.1.10'));
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
    expect(parseReport([report, returned])).toEqual(bounced('anna@x.example', '5.1.2'));
  });

  it('reads a report in UTF-8 (RFC 6533)', () => {
    const report = {
      type: 'message/global-delivery-status',
      text: 'Final-Recipient: utf-8; ünal@x.example\nAction: failed\nStatus: 5.1.1\n',
    };
    const head = { type: 'message/global-headers', text: returned.text };
    expect(parseReport([report, head])).toEqual(bounced('ünal@x.example', '5.1.1'));
  });

  it.each([
    ['a delay', 'delayed', '4.4.1'],
    ['a delivery', 'delivered', '2.0.0'],
    ['a failure without a code', 'failed', ''],
    ['a temporary failure', 'failed', '4.2.2'],
  ])('finds no bounce in the report of %s', (_, action, code) => {
    const fields = ['Final-Recipient: rfc822; a@x.example', `Action: ${action}`, `Status: ${code}`];
    expect(parseReport([status(...fields), returned])?.bounces).toEqual([]);
  });

  it('reads a complaint, with or without the address', () => {
    const complain = (...more: string[]): MailPart => ({
      type: 'message/feedback-report',
      text: lines('Feedback-Type: abuse', 'User-Agent: Some/1.0', 'Version: 1', ...more),
    });
    const address = 'Original-Rcpt-To: <anna@x.example>';
    const find = (part: MailPart) => parseReport([part, returned])?.complaint;
    expect(find(complain(address))).toEqual({ address: 'anna@x.example' });
    expect(find(complain())).toEqual({ address: null });
    const other = { ...complain(), text: 'Feedback-Type: not-spam' };
    expect(find(other)).toBeNull();
  });

  it('reads nothing in other mails, nor in reports about mails that have no id of ours', () => {
    expect(parseReport([returned])).toBeUndefined();
    const report = status('Final-Recipient: rfc822; a@x.example', 'Status: 5.1.1');
    expect(parseReport([report])).toBeUndefined();
    for (const id of ['<1@shop.example>', ID, `<${ID}>`, `<x${ID}@shop.example>`, '']) {
      const text = `Message-ID: ${id}\n`;
      expect(parseReport([report, { type: 'message/rfc822', text }])).toBeUndefined();
    }
  });

  it('takes the id of the returned mail from its head only', () => {
    const text = `Subject: Hi\n\nMessage-ID: <${ID}@shop.example>\n`;
    expect(
      parseReport([status('Status: 5.1.1'), { type: 'message/rfc822', text }]),
    ).toBeUndefined();
  });

  it('reads ten recipients at most of however long a report', () => {
    const group = 'Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.1.1\n\n';
    const part = { type: 'message/delivery-status', text: group.repeat(500) };
    expect(parseReport([part, returned])?.bounces).toHaveLength(10);
  });
});

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
  expect(parseReport([report, complaint, returned])).toEqual({
    messageId: ID,
    bounces: [],
    complaint: { address: null },
  });
});
