import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import { KeyedReads } from '#platform/database/keyed-reads.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { account } from '#loyalty/accounts/account.js';
import { toContactDetails } from '#loyalty/accounts/contact-details.js';
import { listSmsCountries } from '#loyalty/accounts/sms-countries.js';
import type { Card } from '#loyalty/cards/card.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import type { Contact } from './message-channel.js';
import type { PicturedCard } from './card-message-pictures.service.js';
import type { CardMessageContent } from './card-message-texts.js';

/** @property smsCountries the countries that the store sends SMS to */
export type FoundContent = {
  customerId: number;
  contact: Contact;
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
    const store = await this.readModels.load(account, card.accountId);
    if (!store) throw new Error(`customer card ${card.id} is of no store`);
    const { email, emailBounce, phone } = holder.state;
    const { name, storeName, locale, addressForm, logo } = store.state;
    const template = await this.findTemplate(card.cardId);
    const { stampsCount } = card;
    const { name: cardName, cardColor: color, stampsRequired } = template.card;
    const link = `${this.config.publicUrl}/passes/${card.uuid}`;
    return {
      customerId: holder.state.id,
      contact: { email, hasBounced: emailBounce !== undefined, phone },
      content: {
        store: storeName ?? name,
        locale,
        addressForm,
        contact: toContactDetails(store.state),
        link,
        card: { name: cardName, color, stampsCount, stampsRequired },
      },
      pictured: { ...template, stampsCount, logo },
      smsCountries: listSmsCountries(store.state),
    };
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
