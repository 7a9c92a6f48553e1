import { expect } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import type { Client } from '../services/service.js';

export type Sent = { status: number; headers: Headers; text: string; location: string };

type Fields = Record<string, string>;

/** A poster with a card of its own. */
export async function newPoster(
  store: Client,
  attributes: object = {},
  card: object = {},
): Promise<PosterJson> {
  const { body } = await store.post<CardJson>(`${store.store}/cards`, {
    card: { name: 'Coffee club', ...card },
  });
  const response = await store.post<PosterJson>(`${store.store}/posters`, {
    poster: { card_id: body.id, title: 'Ten stamps, one coffee', ...attributes },
  });
  expect(response.status).toBe(201);
  return response.body;
}

/** Of a poster's form, as a browser without JavaScript uses it. */
export class SignupForm {
  private constructor(
    readonly url: string,
    private readonly origin: string,
    readonly page: Sent,
  ) {}

  /** @param origin of the service's public address */
  static async open(
    baseUrl: string,
    origin: string,
    { signup_url: signupUrl }: PosterJson,
    query = '',
  ): Promise<SignupForm> {
    const url = `${baseUrl}${new URL(signupUrl).pathname}${query}`;
    const response = await fetch(url);
    return new SignupForm(url, origin, sent(response, await response.text()));
  }

  /** Reads the hidden fields. */
  get hidden(): Fields {
    const hiddenFields = this.page.text.matchAll(
      /<input type="hidden" name="(\w+)" value="([^"]*)">/g,
    );
    return Object.fromEntries([...hiddenFields].map(([, name = '', value = '']) => [name, value]));
  }

  async send(fields: Fields, headers: Fields = {}): Promise<Sent> {
    const response = await fetch(this.url, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: this.origin, 'sec-fetch-site': 'same-origin', ...headers },
      body: new URLSearchParams({ ...this.hidden, ...fields }),
    });
    return sent(response, await response.text());
  }
}

function sent({ status, headers }: Response, text: string): Sent {
  return { status, headers, text, location: headers.get('location') ?? '' };
}

/** Finds the value of a field in the page. */
export function findFieldValue(page: string, name: string): string | undefined {
  const field = new RegExp(`<input[^>]* name="${name}"[^>]*>`).exec(page)?.[0];
  return field === undefined ? undefined : (/ value="([^"]*)"/.exec(field)?.[1] ?? '');
}

/** Finds the error message of a field. */
export function findFieldError(page: string, name: string): string | undefined {
  return new RegExp(`id="field-${name}-error">([^<]*)<`).exec(page)?.[1];
}
