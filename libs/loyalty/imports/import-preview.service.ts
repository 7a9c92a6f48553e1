import { Injectable } from '@nestjs/common';
import { RejectedError } from '#platform/kernel/errors.js';
import { getNow } from '#platform/kernel/clock.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import type { CustomerCardJson } from '#loyalty/stamping/customer-card.dto.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { countAbsorbedStamps } from '#loyalty/stamping/imported-stamps.commands.js';
import { setImportedStamps } from '#loyalty/stamping/imported-stamps.js';
import type { Template } from '#loyalty/stamping/customer-card.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import {
  customer,
  updateCustomer,
  type Customer,
  type StoreRegion,
} from '#loyalty/customers/customer.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';
import { readWholeStream } from './whole-stream.js';
import { givesConsent, omitMerged, omitWithdrawn } from './customer-changes.js';
import type { CustomerImport } from './customer-import.js';
import type { Match } from './customer-matches.service.js';
import type { ImportEntry } from './import-row.dto.js';
import { runConcurrently } from './row-concurrency.js';

/** Reads of as many rows at once are grouped into statements. */
const CONCURRENCY = 48;

/** A row about a customer who exists. */
export type KnownRow = { existing: Customer; match: Match; entry: ImportEntry };

export type Preview = { willChange: boolean } | { errors: FieldIssues };

/** Tells what rows about customers who exist would do, by the decisions of the commands that apply them. */
@Injectable()
export class ImportPreview {
  constructor(
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly customerCards: CustomerCardsService,
    private readonly templates: TemplatesService,
  ) {}

  async preview(
    checked: CustomerImport,
    region: StoreRegion,
    rows: KnownRow[],
  ): Promise<Map<KnownRow, Preview>> {
    const previews = new Map<KnownRow, Preview>();
    if (rows.length === 0) return previews;
    const { accountId, cardId } = checked;
    const ids = rows.map(({ existing }) => existing.id);
    const [template, cards] =
      cardId === null
        ? [null, new Map<number, CustomerCardJson[]>()]
        : await Promise.all([
            this.templates.get(accountId, cardId),
            this.customerCards.listByCustomer(ids),
          ]);
    await runConcurrently(rows, CONCURRENCY, async (row) => {
      try {
        const card = cards.get(row.existing.id)?.find(({ card_id: id }) => id === cardId);
        const changesCard = template !== null && (await this.changesCard(template, row, card));
        previews.set(row, {
          willChange: (await this.changesCustomer(region, row)) || changesCard,
        });
      } catch (error) {
        if (!(error instanceof RejectedError)) throw error;
        previews.set(row, { errors: error.issues });
      }
    });
    return previews;
  }

  private async changesCard(
    template: Template,
    { existing, entry: { code, stamps } }: KnownRow,
    card: CustomerCardJson | undefined,
  ): Promise<boolean> {
    if (!card) return true;
    if (code !== null && code !== card.code) {
      throw new RejectedError({ code: [ISSUES.card_code_differs] });
    }
    if (stamps === null) return false;
    const state = (await this.readModels.load(customerCardReadModel, card.id))?.state;
    const stampImport = { stamps, reason: '', customerId: existing.id };
    const absorbedStamps = await countAbsorbedStamps(this.readModels, state);
    return setImportedStamps(state, template, { ...stampImport, absorbedStamps }).length > 0;
  }

  private async changesCustomer(
    region: StoreRegion,
    { existing, match, entry }: KnownRow,
  ): Promise<boolean> {
    const history = givesConsent(existing, entry.changes)
      ? await readWholeStream(this.eventStore, toStreamName(customer, existing.id))
      : [];
    const changes = omitWithdrawn(omitMerged(entry.changes, match), history);
    return updateCustomer(existing, changes, { ...region, now: getNow() }).length > 0;
  }
}
