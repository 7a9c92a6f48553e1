import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { getErrorMessage, UnavailableError } from '#platform/kernel/errors.js';
import type { RequestSource } from '#platform/kernel/aggregate.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { ConfirmConsent } from '#loyalty/customers/consents.commands.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { findConfirmedConsent } from '#outbound/messages/consent-links.js';

/** Records that the link of a card was opened which had gone to an address: from then on the consent for it holds. */
@Injectable()
export class ConsentConfirmations {
  private readonly log = new Logger('consents');

  constructor(
    private readonly commands: CommandBus,
    private readonly readModels: ReadModels,
    private readonly keys: MasterKeys,
  ) {}

  /**
   * Confirms the consent of an opened link. Anything else changes nothing, and looks the same.
   * @param card the one that the link leads to now
   * @returns whether it was dealt with; false: nothing can be recorded now, so the link has to be opened again
   */
  async confirm(
    link: { uuid: string; token: string },
    { accountId, customerId }: Pick<CustomerCard, 'accountId' | 'customerId'>,
    source: RequestSource,
  ): Promise<boolean> {
    const holder = await this.readModels.loadCurrent(customerReadModel, customerId);
    if (!holder || holder.isErased) return true;
    const key = this.keys.getDataKey('consent links');
    const consent = findConfirmedConsent(link.token, key, {
      uuid: link.uuid,
      contact: holder.state,
    });
    if (!consent) return true;
    const actor = { type: 'customer', id: customerId } as const;
    const context = { accountId, actor, channel: 'web_card', ...source };
    try {
      await this.commands.execute(new ConfirmConsent(context, customerId, consent));
      return true;
    } catch (error) {
      // The card is shown all the same: somebody may be at the till with it.
      if (!(error instanceof UnavailableError)) throw error;
      this.log.warn(`a consent is not confirmed: ${getErrorMessage(error)}`, {
        request_id: source.requestId,
      });
      return false;
    }
  }
}
