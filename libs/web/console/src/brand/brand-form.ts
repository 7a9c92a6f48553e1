import type { ContactDetails } from '#accounts/account.events.js';
import { MAX_CONTACT_LENGTHS } from '#accounts/contact-details.js';

/** The fields of the form, named as the errors name them. */
export type ContactForm = Record<'website' | 'phone' | 'email' | 'address' | 'terms_text', string>;

/** @property label its name in `t.contact` */
export const CONTACT_FIELDS = [
  {
    name: 'website',
    label: 'website',
    type: 'text',
    inputmode: 'url',
    autocomplete: 'url',
    maxlength: MAX_CONTACT_LENGTHS.website,
  },
  {
    name: 'phone',
    label: 'phone',
    type: 'tel',
    autocomplete: 'tel',
    maxlength: MAX_CONTACT_LENGTHS.phone,
  },
  {
    name: 'email',
    label: 'email',
    type: 'email',
    autocomplete: 'email',
    maxlength: MAX_CONTACT_LENGTHS.email,
  },
  {
    name: 'address',
    label: 'address',
    rows: 3,
    autocomplete: 'street-address',
    maxlength: MAX_CONTACT_LENGTHS.address,
  },
  { name: 'terms_text', label: 'terms', rows: 5, maxlength: MAX_CONTACT_LENGTHS.termsText },
] as const;

export function readContactDetails(
  form: Readonly<Record<string, string | undefined>>,
): ContactDetails {
  const read = (name: keyof ContactForm) => form[name] ?? null;
  return {
    website: read('website'),
    phone: read('phone'),
    email: read('email'),
    address: read('address'),
    termsText: read('terms_text'),
  };
}

export function toContactForm({
  website,
  phone,
  email,
  address,
  termsText,
}: ContactDetails): ContactForm {
  return {
    website: website ?? '',
    phone: phone ?? '',
    email: email ?? '',
    address: address ?? '',
    terms_text: termsText ?? '',
  };
}
