import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { validate as isUuid } from 'uuid';
import { Config } from '#configuration/config.js';
import { fingerprint } from '#platform/kernel/sealing.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { Cookies } from '#web/pages/cookies.js';

const NAME = 'cards';
/** As long as browsers keep a cookie at most. */
const MAX_AGE_SECONDS = 400 * 24 * 3_600;
const MAX_CARDS = 10;

/** How much of a hash of a contact a cookie holds. */
const CONTACT_HASH_CHARACTERS = 22;
const HASH = /^[A-Za-z0-9_-]{22}$/;
/** An e-mail address and a phone number. */
const MAX_CONTACTS = 2;

/** A contact of a signup, in the form in which it is compared. */
export type EnteredContact = { kind: string; value: string };

type CardLink = { cardId: number; uuid: string };

/** @property contacts hashes of what was entered to get the card; empty: another way led to it */
type RememberedCard = CardLink & { contacts: string[] };

/**
 * Remembers in a cookie which cards a browser has signed up for, so that the poster leads it to its card instead of
 * issuing another one (ADR-0051). The links in it are those that the browser has opened anyway. Beside each stand keyed
 * hashes of the contacts that were entered for it. So a second form with one of them leads back to the same card, and
 * nobody has to look up whether it is a customer's.
 */
@Injectable()
export class RememberedCards {
  private readonly cookies: Cookies;

  constructor(
    { publicUrl }: Config,
    private readonly keys: MasterKeys,
  ) {
    this.cookies = new Cookies(publicUrl);
  }

  /** Finds the link of the card that this browser has signed up for. Unverified: anybody can set a cookie. */
  find(request: FastifyRequest, cardId: number): string | undefined {
    return this.read(request).find((card) => card.cardId === cardId)?.uuid;
  }

  /** Finds the link of that card if one of the contacts was entered to get it, whoever has them. */
  findByContacts(
    request: FastifyRequest,
    cardId: number,
    contacts: readonly EnteredContact[],
  ): string | undefined {
    const card = this.read(request).find((remembered) => remembered.cardId === cardId);
    const hashes = this.hashContacts(cardId, contacts);
    return card?.contacts.some((hash) => hashes.includes(hash)) ? card.uuid : undefined;
  }

  /** Remembers a card that the browser has just signed up for. */
  remember(
    request: FastifyRequest,
    reply: FastifyReply,
    { cardId, uuid }: CardLink,
    contacts: readonly EnteredContact[],
  ): void {
    this.write(request, reply, { cardId, uuid, contacts: this.hashContacts(cardId, contacts) });
  }

  /**
   * Replaces the link of a remembered card by the one that was opened last, which may come from a message.
   * @param hasSameHolder whether both are cards of one person; otherwise the contacts do not belong to it
   */
  replace(
    request: FastifyRequest,
    reply: FastifyReply,
    { cardId, uuid }: CardLink,
    hasSameHolder: boolean,
  ): void {
    const former = this.read(request).find((card) => card.cardId === cardId);
    const contacts = hasSameHolder ? (former?.contacts ?? []) : [];
    this.write(request, reply, { cardId, uuid, contacts });
  }

  private hashContacts(cardId: number, contacts: readonly EnteredContact[]): string[] {
    const key = this.keys.getDataKey('remembered contacts');
    return contacts.map(({ kind, value }) =>
      fingerprint(key, cardId, kind, value).toString('base64url').slice(0, CONTACT_HASH_CHARACTERS),
    );
  }

  private write(request: FastifyRequest, reply: FastifyReply, card: RememberedCard): void {
    const others = this.read(request).filter(({ cardId }) => cardId !== card.cardId);
    const cards = [card, ...others].slice(0, MAX_CARDS);
    const value = cards
      .map(({ cardId, uuid, contacts }) => [cardId, uuid, ...contacts].join('.'))
      .join('~');
    this.cookies.set(reply, NAME, value, { maxAgeSeconds: MAX_AGE_SECONDS });
  }

  private read(request: FastifyRequest): RememberedCard[] {
    const value = this.cookies.read(request, NAME) ?? '';
    return value.split('~').flatMap((part) => {
      const [id = '', uuid = '', ...hashes] = part.split('.', 2 + MAX_CONTACTS);
      if (!/^[1-9]\d{0,15}$/.test(id) || !isUuid(uuid)) return [];
      return [{ cardId: Number(id), uuid, contacts: hashes.filter((hash) => HASH.test(hash)) }];
    });
  }
}
