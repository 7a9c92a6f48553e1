import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { RequestSource } from '#platform/kernel/aggregate.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { CONSENT_FIELDS } from '#loyalty/customers/consents.js';
import { ConfirmConsent } from '#loyalty/customers/consents.commands.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import type { ConsentKind } from '#loyalty/customers/customer.events.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { findLinkedConsent } from '#outbound/messages/consent-links.js';
import { hasStoppedMessages } from './holder-message-stops.service.js';

type LinkedConsent = { kind: ConsentKind; address: string; token: string; isConfirmed: boolean };
type CardHolder = Pick<CustomerCard, 'id' | 'accountId' | 'customerId'>;

/**
 * Finds and confirms the consent of a card's link, which had gone to its address. Opening the link confirms nothing: mail
 * servers open links too, and the card's holder may want to see the card alone.
 */
@Injectable()
export class ConsentConfirmations {
  constructor(
    private readonly pool: Pool,
    private readonly commands: CommandBus,
    private readonly readModels: ReadModels,
    private readonly keys: MasterKeys,
  ) {}

  /** Finds the consent of a link, unless it was withdrawn, messages are stopped, or the customer has another address now. */
  async find(token: unknown, holder: CardHolder): Promise<LinkedConsent | null> {
    if (typeof token !== 'string') return null;
    const customer = await this.readModels.loadCurrent(customerReadModel, holder.customerId);
    if (!customer || customer.isErased) return null;
    const { state } = customer;
    const key = this.keys.getDataKey('consent links');
    const { accountId } = holder;
    const consent = findLinkedConsent(token, key, { accountId, contact: state });
    if (!consent || !state[CONSENT_FIELDS[consent.kind]]) return null;
    if (await hasStoppedMessages(this.pool, holder.id)) return null;
    const isConfirmed = !state.unconfirmedConsents.includes(consent.kind);
    return { ...consent, token, isConfirmed };
  }

  /** Confirms a consent. Doing so again changes nothing. */
  async confirm(
    { kind, address }: LinkedConsent,
    { accountId, customerId }: CardHolder,
    source: RequestSource,
  ): Promise<void> {
    const actor = { type: 'customer', id: customerId } as const;
    const context = { accountId, actor, channel: 'web_card', ...source };
    await this.commands.execute(new ConfirmConsent(context, customerId, { kind, address }));
  }
}
