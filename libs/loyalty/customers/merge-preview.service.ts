import { Injectable } from '@nestjs/common';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { assertPersonSize } from '#loyalty/stamping/person-size.js';
import type { Customer } from './customer.js';
import { customerReadModel } from './customer.entity.js';
import type { CustomerMerged, PersonalFields } from './customer.events.js';
import { planMerge } from './merging.commands.js';
import { mergeCustomers } from './merging.js';
import { ISSUES } from '#translations/issues.js';

/** A card that the surviving customer would have. @property added the stamps of the other customer's card */
export type MergedCardPreview = { cardId: number; stamps: number; added: number; isMoved: boolean };

/**
 * What a merge would do.
 * @property personal the fields that the survivor would take over
 * @property consents those that would be withdrawn
 */
export type MergePreview = {
  personal: Partial<PersonalFields>;
  consents: ('marketing' | 'sms')[];
  cards: MergedCardPreview[];
};

/** Previews merges by the decision that the command makes. */
@Injectable()
export class MergePreviews {
  constructor(
    private readonly readModels: ReadModels,
    private readonly customerCards: CustomerCardsService,
  ) {}

  /** @throws NotFoundError; RejectedError when the merge would be refused */
  async preview(
    accountId: number,
    pair: { survivorId: number; otherId: number },
  ): Promise<MergePreview> {
    const { survivorId, otherId } = pair;
    if (survivorId === otherId) {
      throw new RejectedError({ from_customer_id: [ISSUES.same_customer] });
    }
    const [survivor, other] = await Promise.all(
      [survivorId, otherId].map((id) => this.getCustomer(accountId, id)),
    );
    if (!survivor || !other) throw new NotFoundError('Customer');
    const ids = await this.customerCards.listIds([survivorId, otherId]);
    const loaded = await Promise.all(
      ids.map(({ id }) => this.readModels.loadCurrent(customerCardReadModel, id)),
    );
    const cards = loaded.flatMap((card) => card?.state ?? []);
    const plan = planMerge(cards, pair);
    const [event] = mergeCustomers(survivor, other, plan).survivor;
    assertPersonSize(await this.customerCards.measurePerson([survivorId, otherId]));
    const { personal, marketingConsent, smsConsent } = (event as CustomerMerged).data;
    return {
      personal: personal ?? {},
      consents: [
        ...(marketingConsent === false ? (['marketing'] as const) : []),
        ...(smsConsent === false ? (['sms'] as const) : []),
      ],
      cards: toCardPreviews(cards, plan, survivorId),
    };
  }

  private async getCustomer(accountId: number, id: number): Promise<Customer> {
    const loaded = await this.readModels.loadCurrent(customerReadModel, id);
    if (loaded?.state.accountId !== accountId) throw new NotFoundError('Customer');
    return loaded.state;
  }
}

function toCardPreviews(
  cards: CustomerCard[],
  { moved, added }: ReturnType<typeof planMerge>,
  survivorId: number,
): MergedCardPreview[] {
  return cards.flatMap((card): MergedCardPreview[] => {
    const { id, cardId, customerId, mergedInto, stampsCount: stamps } = card;
    if (mergedInto) return [];
    if (moved.includes(id)) return [{ cardId, stamps, added: 0, isMoved: true }];
    if (customerId !== survivorId) return [];
    const sourceIds = new Set(
      added.filter(({ intoId }) => intoId === id).map(({ fromId }) => fromId),
    );
    const addedStamps = cards
      .filter((candidate) => sourceIds.has(candidate.id))
      .reduce((sum, candidate) => sum + candidate.stampsCount, 0);
    return [{ cardId, stamps, added: addedStamps, isMoved: false }];
  });
}
