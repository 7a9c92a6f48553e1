import { Injectable } from '@nestjs/common';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { MasterKeys } from '#platform/database/master-keys.js';
import { MAX_KEPT_FORM_BYTES, pickKeptFields, type KeptForm } from './kept-form.js';

const PURPOSE = 'kept_form';
/** As long as somebody may take who comes back to a page the next morning. */
const MAX_AGE_MS = 24 * 3_600_000;
/** Leaves room for the other fields of the forms that carry it. */
const MAX_SEALED_CHARACTERS = MAX_KEPT_FORM_BYTES - 4 * 1024;
const MAX_PLAIN_BYTES = 256 * 1024;

/**
 * Seals the fields of a form whose session has ended, so that the pages of the sign-in can carry them. Only their user gets
 * them back: whoever else signs in at the same browser, or reads its pages, does not (ADR-0049).
 */
@Injectable()
export class KeptForms {
  constructor(private readonly keys: MasterKeys) {}

  /** @returns undefined when there is nothing to keep, or too much */
  seal(form: KeptForm, userId: number, now: Date): string | undefined {
    const fields = pickKeptFields(form.fields);
    if (!fields) return undefined;
    const plain = JSON.stringify({ ...form, fields, at: now.getTime() });
    // Of bytes that are no letters, JSON takes several times as many.
    if (Buffer.byteLength(plain) > MAX_PLAIN_BYTES) return undefined;
    const sealed = this.keys.seal(PURPOSE, deflateRawSync(plain), createContext(userId));
    const text = sealed.toString('base64url');
    return text.length > MAX_SEALED_CHARACTERS ? undefined : text;
  }

  /** @returns undefined when it is too old, of another user, or no kept form */
  open(sealed: string, userId: number, now: Date): KeptForm | undefined {
    let bytes: Buffer;
    try {
      bytes = this.keys.open(PURPOSE, Buffer.from(sealed, 'base64url'), createContext(userId));
    } catch {
      return undefined;
    }
    const text = inflateRawSync(bytes, { maxOutputLength: MAX_PLAIN_BYTES }).toString();
    const { at, ...form } = JSON.parse(text) as KeptForm & { at: number };
    return now.getTime() - at > MAX_AGE_MS ? undefined : form;
  }
}

function createContext(userId: number): string {
  return `${PURPOSE} ${userId}`;
}
