import { createHmac, timingSafeEqual } from 'node:crypto';

type Form = Readonly<Record<string, string | undefined>>;

/** A provider's report about an SMS that it has accepted. */
export type SmsArrival = {
  providerId: string;
  arrival: 'delivered' | 'undelivered';
  /** The provider's error code when it did not arrive. */
  code: number | null;
};

const PATH = '/sms/status';
const ARRIVALS: Readonly<Record<string, SmsArrival['arrival']>> = {
  delivered: 'delivered',
  read: 'delivered',
  undelivered: 'undelivered',
  failed: 'undelivered',
  canceled: 'undelivered',
};
const MAX_CODE = 2_147_483_647;

/**
 * Creates the URL that the provider reports to.
 * @returns undefined when the provider could not reach it, since it refuses such URLs
 */
export function createSmsCallbackUrl(publicUrl: string, messageId: string): string | undefined {
  const { protocol, hostname } = new URL(publicUrl);
  const isPublic =
    protocol === 'https:' &&
    hostname.includes('.') &&
    !/\.(localhost|local|internal)$/.test(hostname);
  return isPublic ? `${publicUrl}${PATH}/${messageId}` : undefined;
}

/** Signs as Twilio does: HMAC-SHA1 with the account's token over the URL and all fields, sorted by their names. */
export function signSmsCallback(url: string, form: Form, token: string): Buffer {
  const fields = Object.entries(form).sort(([a], [b]) => (a < b ? -1 : 1));
  const signed = url + fields.map(([name, value = '']) => name + value).join('');
  return createHmac('sha1', token).update(signed).digest();
}

/** Verifies the signature of a report. @param header the header X-Twilio-Signature */
export function isSignedSms(url: string, form: Form, token: string, header: unknown): boolean {
  const expected = signSmsCallback(url, form, token);
  const signature = Buffer.from(typeof header === 'string' ? header : '', 'base64');
  return signature.length === expected.length && timingSafeEqual(signature, expected);
}

/** Parses a report. @returns undefined while the message is still on its way */
export function parseSmsArrival(form: Form): SmsArrival | undefined {
  const status = form['MessageStatus'] ?? '';
  const arrival = Object.hasOwn(ARRIVALS, status) ? ARRIVALS[status] : undefined;
  const code = Number(form['ErrorCode'] ?? 0);
  const isCode =
    arrival === 'undelivered' && Number.isInteger(code) && code > 0 && code <= MAX_CODE;
  return arrival && { providerId: form['MessageSid'] ?? '', arrival, code: isCode ? code : null };
}
