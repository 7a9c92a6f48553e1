import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { ReadModels } from '#event-store/read-models/read-models.js';
import { toStoreLogoUrl } from '#accounts/account.dto.js';
import { accountReadModel } from '#accounts/account.entity.js';
import { listSmsCountries } from '#accounts/sms-countries.js';
import { customerReadModel } from '#customers/customer.entity.js';
import { customerCardReadModel } from '#stamping/customer-card.entity.js';
import type { Contact } from './card-message.js';
import type { CardMessageContent } from './card-message-texts.js';

/** @property smsCountries the countries that the store sends SMS to */
export type FoundContent = {
  customerId: number;
  contact: Contact;
  content: CardMessageContent;
  smsCountries: string[];
};

/** Loads the current data that a message is made from. */
@Injectable()
export class CardMessageContents {
  constructor(
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
    const holder = await this.readModels.load(customerReadModel, card.customerId, true);
    if (!holder || holder.isErased || holder.state.erasedAt !== null) return undefined;
    const store = await this.readModels.load(accountReadModel, card.accountId);
    if (!store) throw new Error(`customer card ${card.id} is of no store`);
    const { email, phone } = holder.state;
    const { name, storeName, locale, logo } = store.state;
    const link = `${this.config.publicUrl}/passes/${card.uuid}`;
    return {
      customerId: holder.state.id,
      contact: { email, phone },
      content: {
        store: storeName ?? name,
        locale,
        link,
        logo: logo && toStoreLogoUrl(this.config.publicUrl, logo, '@mail'),
      },
      smsCountries: listSmsCountries(store.state),
    };
  }

  private async card(id: number) {
    const loaded = await this.readModels.load(customerCardReadModel, id, true);
    if (!loaded) throw new Error(`there is no customer card ${id}`);
    return loaded.state;
  }
}
