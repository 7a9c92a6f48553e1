import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import { KeyedReads } from '#platform/database/keyed-reads.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { account, getNameForCustomers, type Account } from '#loyalty/accounts/account.js';
import { toContactDetails } from '#loyalty/accounts/contact-details.js';
import { listSmsCountries } from '#loyalty/accounts/sms-countries.js';
import type { Card } from '#loyalty/cards/card.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { ConsentKind } from '#loyalty/customers/customer.events.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import type { Contact } from './message-channel.js';
import type { PicturedCard } from './card-message-pictures.service.js';
import type { CardMessageContent } from './card-message-texts.js';

/** @property smsCountries the countries that the store sends SMS to */
export type FoundContent = {
  accountId: number;
  customerId: number;
  contact: Contact;
  /** The consents that wait for the link. */
  unconfirmedConsents: ConsentKind[];
  content: CardMessageContent;
  pictured: PicturedCard;
  smsCountries: string[];
};

type TemplateRow = { card: Card; rewards: Reward[] };

const FIND_TEMPLATES = {
  name: 'card_message_templates',
  text: `select c.id, c.state as card,
           coalesce((select jsonb_agg(w.state) from rewards w
             where w.card_id = c.id and w.deleted_at is null), '[]') as rewards
         from cards c where c.id = any (array(select unnest($1::bigint[])))`,
};

const FIND_SAMPLE = {
  name: 'card_message_sample',
  text: `select id from cards where account_id = $1 and ($2::bigint is null or id = $2)
         order by (state ->> 'archivedAt') is not null, id limit 1`,
};
/** How much of a sample is filled. */
const SAMPLE_SHARE = 0.4;
/** Stands in previews for the card of a store that has none yet. */
const NO_CARD = { color: '#000000', stampsCount: 4, stampsRequired: 10 };

/** Loads the current data that a message is made from. */
@Injectable()
export class CardMessageContents {
  private readonly templates = new KeyedReads<number, TemplateRow>(async (ids) => {
    const rows = await query<TemplateRow & { id: number }>(this.pool, {
      ...FIND_TEMPLATES,
      values: [ids],
    });
    return new Map(rows.map(({ id, ...template }) => [id, template]));
  });

  constructor(
    private readonly pool: Pool,
    private readonly readModels: ReadModels,
    private readonly config: Config,
  ) {}

  /**
   * Finds the data of a card, or of the card that it was merged into.
   * @returns undefined when its holder was erased
   */
  async find(customerCardId: number): Promise<FoundContent | undefined> {
    let card = await this.card(customerCardId);
    while (card.mergedInto) card = await this.card(card.mergedInto.id);
    const holder = await this.readModels.loadCurrent(customerReadModel, card.customerId);
    if (!holder || holder.isErased || holder.state.erasedAt !== null) return undefined;
    const store = await this.getStore(card.accountId);
    const { email, emailBounce, phone, unconfirmedConsents } = holder.state;
    const template = await this.findTemplate(card.cardId);
    const { stampsCount } = card;
    return {
      accountId: card.accountId,
      customerId: holder.state.id,
      contact: { email, hasBounced: emailBounce !== undefined, phone },
      unconfirmedConsents,
      content: this.toContent(store, card.uuid, toShownCard(template.card, stampsCount)),
      pictured: { ...template, stampsCount, logo: store.logo },
      smsCountries: listSmsCountries(store),
    };
  }

  /**
   * Finds the data of a card that nobody holds, for previews.
   * @param cardId null, or of another store: the first card of the store
   * @param uuid stands for that of the card of a customer
   */
  async findSample(
    accountId: number,
    cardId: number | null,
    uuid: string,
  ): Promise<Pick<FoundContent, 'content' | 'smsCountries'> & { pictured: PicturedCard | null }> {
    const store = await this.getStore(accountId);
    const find = async (id: number | null) => {
      const values = [accountId, id];
      const [row] = await query<{ id: number }>(this.pool, { ...FIND_SAMPLE, values });
      return row?.id;
    };
    const id = (await find(cardId)) ?? (await find(null));
    const template = id === undefined ? null : await this.findTemplate(id);
    const stampsCount = template ? Math.ceil(template.card.stampsRequired * SAMPLE_SHARE) : 0;
    const card = template
      ? toShownCard(template.card, stampsCount)
      : { ...NO_CARD, name: store.storeName ?? store.name };
    return {
      content: this.toContent(store, uuid, card),
      pictured: template && { ...template, stampsCount, logo: store.logo },
      smsCountries: listSmsCountries(store),
    };
  }

  private toContent(
    store: Account,
    uuid: string,
    card: CardMessageContent['card'],
  ): CardMessageContent {
    const { name, storeName, locale, addressForm } = store;
    return {
      store: getNameForCustomers(storeName ?? name, card),
      locale,
      addressForm,
      contact: toContactDetails(store),
      link: `${this.config.publicUrl}/passes/${uuid}`,
      card,
    };
  }

  private async getStore(id: number): Promise<Account> {
    const store = await this.readModels.load(account, id);
    if (!store) throw new Error(`there is no store ${id}`);
    return store.state;
  }

  private async findTemplate(cardId: number): Promise<TemplateRow> {
    const row = await this.templates.find(cardId);
    if (!row) throw new Error(`there is no card ${cardId}`);
    return row;
  }

  private async card(id: number) {
    const loaded = await this.readModels.loadCurrent(customerCardReadModel, id);
    if (!loaded) throw new Error(`there is no customer card ${id}`);
    return loaded.state;
  }
}

function toShownCard(
  { name, cardColor: color, stampsRequired }: Card,
  stampsCount: number,
): CardMessageContent['card'] {
  return { name, color, stampsCount, stampsRequired };
}
