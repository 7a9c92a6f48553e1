import { Body, Controller, Param } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { ForbiddenError, NotFoundError } from '#platform/kernel/errors.js';
import { parsePublicEventId, toPublicEventId } from '#platform/kernel/public-id.js';
import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import type { DetailedEntry } from '#loyalty/history/history-entry.dto.js';
import { NO_FILTER } from '#loyalty/history/history-query.js';
import { HistoryService } from '#loyalty/history/history.service.js';
import { isAllowed } from '#identity/roles.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { loadView } from '#web/pages/view.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import type { CardPath } from '#loyalty/stamping/card-holder.js';
import { AdjustCustomerCard, ReverseCardEvent } from '#loyalty/stamping/corrections.commands.js';
import { AdjustDto, ReverseDto } from '#loyalty/stamping/customer-card.dto.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { linkToCustomer, renderName } from './customer-list.controller.js';
import { buildCardFlashPath, isOpen } from './customer-view.service.js';
import { buildCustomerPath } from './customer-list-page.js';
import { Timeline } from './timeline.service.js';

/** The reasons to choose from, the most frequent first. */
const REASONS = ['wrong_card', 'twice', 'returned', 'other'] as const;
const ADJUST_REASONS = ['forgotten', ...REASONS] as const;
/** Limits the redemptions among which one that still counts is looked for. */
const MAX_REDEMPTIONS = 20;
/** The reasons that explain one direction only; the form hides those that do not fit. */
const DIRECTIONS: Readonly<Record<string, string>> = {
  forgotten: 'add',
  twice: 'remove',
  returned: 'remove',
};

type CorrectionView = {
  about: string;
  action: string;
  back: string;
  reasons: readonly string[];
  /** The only direction that a reason explains, by its name. */
  directions: typeof DIRECTIONS;
} & Reason;

/** The name of a reason, and what somebody typed in place of one. */
type Reason = { reason: string; other: string };

type Adjustment = Reason & { direction: string; stamps: string };

type AdjustView = CorrectionView & Adjustment & { balance: string; count: string };

export type CardParameters = { id: string; customer_card_id: string };
type EventParameters = CardParameters & { event_id: string };

/**
 * @property redemption what has to be undone first, its path blank for those who may not; null: nothing
 * @property tooFew why it cannot be undone, as too few stamps are left; blank: there are enough
 * @property adjust the path of the page on which the stamps can be put right; blank for those who may not
 * @property result what the undo leads to; blank: the entry is undone already
 */
type UndoView = CorrectionView & {
  tooFew: string;
  adjust: string;
  result: string;
  redemption: { text: string; path: string; what: string } | null;
};

const undoView = loadView<UndoView>(import.meta.url, './views/undo.eta');
const adjustView = loadView<AdjustView>(import.meta.url, './views/adjust.eta');

/** Serves the pages that put a balance right: undo an entry, or add and take off stamps. */
@Controller('app/stores/:account_id/customers/:id/cards/:customer_card_id')
export class CorrectionPagesController {
  constructor(
    private readonly commands: FormCommands,
    private readonly customers: CustomersService,
    private readonly customerCards: CustomerCardsService,
    private readonly history: HistoryService,
    private readonly timeline: Timeline,
  ) {}

  @GetPage('reverseCardEvent', 'events/:event_id/undo')
  async askToUndo(
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param() path: EventParameters,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.showUndo(localization, store, user, path, {
      reason: '',
      other: '',
    });
  }

  @PostForm('reverseCardEvent', 'events/:event_id/undo')
  async undo(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param() path: EventParameters,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const ids = parseCardParameters(path);
    const { id, customer_id: customerId } = await this.customerCards.get(store.id, ids);
    const reason = readReason(form);
    const staffId = isAllowed(store.role, 'reverseCardEvent.any') ? undefined : user.userId;
    try {
      const body = readFields(ReverseDto, { reason: renderReason(reason, localization) });
      await this.commands.execute(
        new ReverseCardEvent(context, ids, path.event_id, body.reason, staffId),
      );
    } catch (error) {
      const t = localization.t.customerPages;
      const errors =
        error instanceof ForbiddenError
          ? { fields: {}, text: t.tooLate }
          : describeRejection(error, localization);
      return this.showUndo(localization, store, user, path, { ...reason, errors });
    }
    return redirectTo(buildCardFlashPath(store, { id, customerId }, 'undone'));
  }

  @GetPage('adjustCustomerCard', 'adjust')
  async showForm(
    @CurrentStore() store: EnteredStore,
    @Param() path: CardParameters,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.renderForm(localization, store, path, {
      direction: 'add',
      stamps: '1',
      reason: '',
      other: '',
    });
  }

  @PostForm('adjustCustomerCard', 'adjust')
  async adjust(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param() path: CardParameters,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const ids = parseCardParameters(path);
    const { id, customer_id: customerId } = await this.customerCards.get(store.id, ids);
    const { direction = 'add', stamps = '' } = form;
    const input = readReason(form);
    // Somebody chose the reason before the direction that it does not explain.
    const fits = (DIRECTIONS[input.reason] ?? direction) === direction;
    const reason = fits ? input : { ...input, reason: '' };
    try {
      // What is no number from 1 is refused by the field.
      const count = /^[1-9]\d{0,6}$/.test(stamps.trim()) ? Number(stamps) : 0;
      const body = readFields(AdjustDto, {
        stamps: direction === 'remove' ? -count : count,
        reason: renderReason(reason, localization),
      });
      const correction = { stamps: body.stamps, reason: body.reason, externalRef: null };
      await this.commands.execute(new AdjustCustomerCard(context, ids, correction));
    } catch (error) {
      const errors = describeRejection(error, localization);
      const values = { direction, stamps, ...reason };
      return this.renderForm(localization, store, path, { ...values, errors });
    }
    return redirectTo(buildCardFlashPath(store, { id, customerId }, 'corrected'));
  }

  /**
   * Finds the redemption that has to be undone first, as it spent the stamps of an entry. An earlier redemption did not:
   * then a correction took them off.
   */
  private async findSpendingRedemption(
    store: EnteredStore,
    id: number,
    { entry: { stamps, revision }, reversedBy }: DetailedEntry,
    balance: number,
  ): Promise<DetailedEntry | undefined> {
    if (reversedBy !== null || (stamps ?? 0) <= balance) return undefined;
    const filter = { ...NO_FILTER, customerCardId: id, name: 'reward.redeemed' };
    const readPage = await this.history.list(store.id, filter, null);
    const redemptions = await readPage({ after: null, limit: MAX_REDEMPTIONS });
    return redemptions.find(
      (redemption) => redemption.reversedBy === null && redemption.entry.revision > revision,
    );
  }

  /** @throws NotFoundError */
  private async getEntry(store: EnteredStore, id: number, eventId: string): Promise<DetailedEntry> {
    const storedId = parsePublicEventId(eventId);
    if (storedId === undefined) throw new NotFoundError('Event');
    return this.history.getOfCustomerCard(store.id, id, storedId);
  }

  private async showUndo(
    localization: Localization,
    store: EnteredStore,
    { userId }: SignedInUser,
    path: EventParameters,
    { errors, ...state }: Reason & Rejectable,
  ): Promise<PageResult> {
    const { t: translations } = localization;
    const t = translations.customerPages.undo;
    const ids = parseCardParameters(path);
    const card = await this.customerCards.get(store.id, ids);
    const customer = await this.customers.get(store.id, card.customer_id);
    if (!isOpen(customer)) return redirectTo(buildCustomerPath(store, customer.id));
    const entry = await this.getEntry(store, ids.id, path.event_id);
    const reader = { store, userId, localization };
    const { what, at } = await this.timeline.describe(reader, entry);
    const spending = await this.findSpendingRedemption(store, ids.id, entry, card.stamps_count);
    const redemption = spending && (await this.timeline.describe(reader, spending));
    const mayUndo = isAllowed(store.role, 'reverseCardEvent.any');
    const name = renderName(customer, translations.customerPages.person.erased);
    const { stamps_count: from } = card;
    const { stamps } = entry.entry;
    const isOpenEntry = entry.reversedBy === null;
    return showPage({
      view: undoView,
      title: t.title,
      width: 'form',
      breadcrumb: linkToCustomer(store, customer, translations),
      errors,
      data: {
        about: t.about({ name, what, when: at }),
        redemption:
          spending && redemption
            ? {
                text: t.spent({ what: redemption.what, when: redemption.at }),
                path: mayUndo
                  ? `${buildCardPath(store, ids)}/events/${toPublicEventId(spending.entry.eventId)}/undo`
                  : '',
                what: redemption.what,
              }
            : null,
        tooFew: (stamps ?? 0) > from && isOpenEntry ? t.tooFew({ count: from }) : '',
        adjust: isAllowed(store.role, 'adjustCustomerCard')
          ? `${buildCardPath(store, ids)}/adjust`
          : '',
        result: !isOpenEntry
          ? ''
          : stamps === null
            ? t.text
            : t.result({ from, to: from - stamps }),
        action: `${buildCardPath(store, ids)}/events/${path.event_id}/undo`,
        back: buildCustomerPath(store, customer.id),
        reasons: REASONS,
        directions: {},
        ...state,
      },
    });
  }

  private async renderForm(
    localization: Localization,
    store: EnteredStore,
    path: CardParameters,
    { errors, ...state }: Adjustment & Rejectable,
  ): Promise<PageResult> {
    const { t: translations } = localization;
    const t = translations.customerPages.adjust;
    const ids = parseCardParameters(path);
    const card = await this.customerCards.get(store.id, ids);
    const customer = await this.customers.get(store.id, card.customer_id);
    if (!isOpen(customer)) return redirectTo(buildCustomerPath(store, customer.id));
    const name = renderName(customer, translations.customerPages.person.erased);
    return showPage({
      view: adjustView,
      title: t.title,
      width: 'form',
      breadcrumb: linkToCustomer(store, customer, translations),
      errors,
      data: {
        about: t.about({ name, card: card.card_name }),
        balance: t.now({ count: card.stamps_count }),
        count: String(card.stamps_count),
        reasons: ADJUST_REASONS,
        directions: DIRECTIONS,
        action: `${buildCardPath(store, ids)}/adjust`,
        back: buildCustomerPath(store, card.customer_id),
        ...state,
      },
    });
  }
}

function readReason({ reason = '', other = '' }: Form): Reason {
  return { reason, other };
}

/** Renders a reason for the history, in the words of its form. */
function renderReason({ reason, other }: Reason, { t }: Localization): string {
  const { reasons } = t.customerPages.undo;
  const isPreset = reason !== 'other' && Object.hasOwn(reasons, reason);
  return isPreset ? reasons[reason as keyof typeof reasons] : other;
}

export function parseCardParameters(path: CardParameters): CardPath {
  return { customerId: parsePathId(path.id), id: parsePathId(path.customer_card_id) };
}

function buildCardPath(store: EnteredStore, { customerId, id }: CardPath): string {
  return `${buildCustomerPath(store, customerId)}/cards/${id}`;
}
