import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext, KeyedRequest } from '#platform/kernel/aggregate.js';
import { getErrorMessage, RejectedError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { query } from '#platform/database/connection.js';
import { createMeta } from '#platform/event-store/commands/decide-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { StoredResponses } from '#platform/event-store/commands/stored-responses.js';
import { ClaimHolders } from '#loyalty/stamping/claim-holders.service.js';
import { EnrolCustomer } from '#loyalty/stamping/customer-card.commands.js';
import { RequestCardLinks } from '#loyalty/customers/card-links.commands.js';
import { CreateCustomer } from '#loyalty/customers/customer.commands.js';
import { customer, listUniqueValues } from '#loyalty/customers/customer.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { CustomerInput } from '#loyalty/customers/customer-input.dto.js';
import type { MessageChannel } from '#outbound/messages/message-channel.js';
import type { EnteredContact } from '#web/web-card/remembered-cards.service.js';
import { WebCards } from '#web/web-card/web-cards.service.js';
import type { Signup } from './signup-form.js';
import { SignupHolds } from './signup-holds.service.js';
import type { SignupPoster } from './signup-poster.js';
import { DecoyCards } from './decoy-cards.service.js';

/**
 * The minimum time of a response, so that timing does not reveal who is a customer. Both ways take far less unless the
 * database is busy.
 */
const MIN_RESPONSE_MS = 200;

/**
 * @property ip the visitor's
 * @property isScanned the visitor has scanned the poster's code
 */
export type SignupVisit = { requestId: string; ip: string; isScanned: boolean };

type KeyedContext = CommandContext & { keyed: KeyedRequest };
type SignupContext = KeyedContext & Pick<SignupVisit, 'isScanned'>;

/** The customers who have the contacts of a form. */
type Holders = { email?: number; phone?: number };

type SignedUp = { uuid: string; heldChannels: MessageChannel[] };

type StoredSignup = { customer_card: { uuid: string }; held_channels: MessageChannel[] };

/** Creates a customer with a card for each new person, and reveals to nobody who is a customer already (ADR-0051). */
@Injectable()
export class Signups {
  private readonly log = new Logger('signup');

  constructor(
    private readonly commands: CommandBus,
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly responses: StoredResponses,
    private readonly decoyCards: DecoyCards,
    private readonly holds: SignupHolds,
    private readonly claimHolders: ClaimHolders,
    private readonly webCards: WebCards,
    private readonly config: Config,
  ) {}

  /**
   * Signs a visitor up.
   * @returns the uuid of the card to redirect to, the same one for the same form, and the channels through which its
   *   link is held
   * @throws RejectedError for `card_id` when the card is not issued any more
   */
  async signUp(at: SignupPoster, signup: Signup, visit: SignupVisit): Promise<SignedUp> {
    const [result] = await Promise.all([this.signUpOnce(at, signup, visit), wait(MIN_RESPONSE_MS)]);
    return result;
  }

  /** Tells whether the page of a remembered card can be opened: it is gone once its customer is erased. */
  async isOpenable(uuid: string): Promise<boolean> {
    return (await this.webCards.find(uuid)) !== undefined;
  }

  private async signUpOnce(
    at: SignupPoster,
    signup: Signup,
    visit: SignupVisit,
  ): Promise<SignedUp> {
    // The key includes the form's content: a visitor may go back and sign up another person.
    const key = this.responses.fingerprint('signup', at.poster.id, JSON.stringify(signup));
    const keyed: KeyedRequest = { key, holder: createId(), status: 303, isStored: false };
    const result = await this.responses.executeKeyed<StoredSignup>(keyed, async () => {
      const causationId = createId();
      const accountId = at.store.id;
      const heldChannels = await this.holds.hold({ accountId, causationId, ip: visit.ip }, signup);
      keyed.storedOnlyFields = { held_channels: heldChannels };
      const uuid = await this.signUpNewOrKnown(at, signup, { ...visit, causationId }, keyed);
      return { customer_card: { uuid }, held_channels: heldChannels };
    });
    // The customer was erased since: the link leads nowhere.
    if (!result) return { uuid: randomUUID(), heldChannels: [] };
    const { customer_card: card, held_channels: heldChannels } = result.body;
    return { uuid: card.uuid, heldChannels };
  }

  private async signUpNewOrKnown(
    at: SignupPoster,
    signup: Signup,
    { requestId, causationId, isScanned }: SignupVisit & { causationId: string },
    keyed: KeyedRequest,
  ): Promise<string> {
    const accountId = at.store.id;
    const context: CommandContext = {
      accountId,
      actor: { type: 'customer', id: 0, name: 'signup' },
      channel: 'poster',
      requestId,
      causationId,
    };
    return this.signUpByHolders(at, signup, await this.findHolders(accountId, signup), {
      ...context,
      keyed,
      isScanned,
    });
  }

  /**
   * Signs up somebody new with the contacts that nobody has, if there are any. Their owner then gets the same messages as if
   * nobody had the others, and learns nothing about those.
   */
  private async signUpByHolders(
    at: SignupPoster,
    signup: Signup,
    holders: Holders,
    { keyed, isScanned, ...context }: SignupContext,
  ): Promise<string> {
    const { email, phone } = signup;
    const free = {
      email: holders.email === undefined ? email : null,
      phone: holders.phone === undefined ? phone : null,
    };
    if (free.email === null && free.phone === null) {
      return this.signUpKnown(at, signup, holders, { ...context, keyed });
    }
    // The message of somebody new goes to the e-mail address, and beside it to a phone that is asked for its consent.
    const sendsLink =
      holders.email === undefined || Boolean(signup.agreed.sms) || !this.config.mail;
    const agreed = {
      marketing: holders.email === undefined ? signup.agreed.marketing : null,
      sms: holders.phone === undefined ? signup.agreed.sms : null,
    };
    try {
      const { customer_card: card } = await this.commands.execute(
        new CreateCustomer(
          { ...context, keyed },
          toCustomerInput({ ...signup, ...free, agreed }),
          at.card.id,
          sendsLink,
          agreed,
          {},
          { posterId: at.poster.id, isScanned },
        ),
      );
      if (!card) throw new Error('whoever signs up gets a card');
      if (holders.email !== undefined) await this.sendLinks(context, holders.email, at.card.id);
      return card.uuid;
    } catch (error) {
      if (!(error instanceof RejectedError) || 'card_id' in error.errors) throw error;
      // Another signup with the same address was faster.
      const others = await this.findHolders(context.accountId, signup);
      if (Object.keys(others).length === Object.keys(holders).length) throw error;
      return this.signUpByHolders(at, signup, others, { ...context, keyed, isScanned });
    }
  }

  /** Signs up a known address: the visitor may be a stranger, so no data pass between them and the customer. */
  private async signUpKnown(
    { card, store }: SignupPoster,
    { firstName, lastName }: Signup,
    { email, phone }: Holders,
    { keyed, ...context }: KeyedContext,
  ): Promise<string> {
    const customerId = email ?? phone;
    if (customerId === undefined) throw new Error('nobody has the contacts of the form');
    // The form leads nowhere once the customer is erased, like that of somebody new.
    keyed.subjectIds = [customerId];
    const path = { accountId: store.id, cardId: card.id, customerId };
    const meta = createMeta(context, getNow());
    const uuid = await this.decoyCards.issue(path, { firstName, lastName }, meta);
    await this.sendLinks(context, customerId, card.id);
    return uuid;
  }

  /** Sends the links of a customer's card to the addresses on file. */
  private async sendLinks(
    context: CommandContext,
    customerId: number,
    cardId: number,
  ): Promise<void> {
    try {
      const id =
        (await this.findCard(customerId, cardId)) ??
        (await this.commands.execute(new EnrolCustomer(context, customerId, cardId))).id;
      await this.commands.execute(new RequestCardLinks(context, { customerId, id }));
    } catch (error) {
      // Erased, merged or enrolled meanwhile. An error here would reveal a customer; sending the form again works.
      if (!(error instanceof RejectedError)) throw error;
      this.log.warn(`no links of a card are sent: ${getErrorMessage(error)}`, {
        request_id: context.requestId,
      });
    }
  }

  /** Finds the customers with the address and the number; for a merged one, the surviving customer. */
  private async findHolders(accountId: number, { email, phone }: Signup): Promise<Holders> {
    const claims = listContacts({ email, phone }).map(({ kind, value }) =>
      this.keys.createClaim(accountId, kind, value, ''),
    );
    const rows = await query<{ kind: keyof Holders; stream_id: string }>(this.pool, {
      name: 'signup_holders',
      text: `select c.kind, c.stream_id from es.claims c
             join unnest($2::text[], $3::bytea[]) as x (kind, value)
               on c.account_id = $1 and c.kind = x.kind and c.value = x.value`,
      values: [accountId, claims.map(({ kind }) => kind), claims.map(({ value }) => value)],
    });
    const prefix = `${customer.name}-`;
    const holders = await Promise.all(
      rows.map(async ({ kind, stream_id: stream }) => [
        kind,
        await this.claimHolders.findSurvivor(
          customerReadModel,
          Number(stream.slice(prefix.length)),
          ({ mergedInto }) => mergedInto?.customerId,
        ),
      ]),
    );
    return Object.fromEntries(holders) as Holders;
  }

  /** Finds the customer's card, unless it was merged into another. */
  private async findCard(customerId: number, cardId: number): Promise<number | undefined> {
    const [row] = await query<{ id: number }>(this.pool, {
      name: 'signup_find_card',
      text: `select id from customer_cards
             where customer_id = $1 and card_id = $2 and merged_into is null`,
      values: [customerId, cardId],
    });
    return row?.id;
  }
}

/** Lists the contacts of a form in the form in which they are compared (ADR-0088). */
export function listContacts({ email, phone }: Pick<Signup, 'email' | 'phone'>): EnteredContact[] {
  return listUniqueValues({ ...toCustomerInput({ email, phone }), externalReferences: [] });
}

function toCustomerInput(signup: Partial<Signup>): CustomerInput {
  const { firstName = '', lastName = null, email = null, phone = null, birthday = null } = signup;
  return {
    firstName,
    lastName,
    email,
    phone,
    birthday,
    metadata: {},
    externalReferences: [],
    marketingConsent: Boolean(signup.agreed?.marketing),
    smsConsent: Boolean(signup.agreed?.sms),
  };
}
