import { Injectable } from '@nestjs/common';
import { IMPORT_CHANNEL } from '#loyalty/stamping/customer-card.js';
import { getNowMs } from '#platform/kernel/clock.js';
import type { Actor } from '#platform/kernel/aggregate.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { isAfter } from '#platform/event-store/port/position.js';
import type { CursorKey } from '#platform/http/page.js';
import { ActorNames } from '#loyalty/history/actor-names.service.js';
import { ExplanationService } from '#loyalty/history/explanation.service.js';
import {
  findNote,
  findReceiptOfTill,
  type DetailedEntry,
} from '#loyalty/history/history-entry.dto.js';
import { NO_FILTER, toCursorKey, type HistoryFilter } from '#loyalty/history/history-query.js';
import { HistoryService } from '#loyalty/history/history.service.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { isAllowed } from '#identity/roles.js';
import type { IconName } from '#web/pages/icons.js';
import type { EnteredStore } from '#web/pages/current-user.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import type { Localization } from '#translations/translations.js';
import { takePage } from '#web/pages/page-query.js';
import {
  describeAuthor,
  describeBalanceAfter,
  describeEntry,
  findIcon,
  isUndoable,
  findText,
  type TimelineEntry,
} from './timeline.js';

/** How long staff may undo what they did themselves. */
const OWN_REVERSAL_MS = 10 * 60_000;

/** A line of a timeline. Paths are from the root of the service. */
export type TimelineLine = {
  at: string;
  icon: IconName;
  what: string;
  /** The name of the card that it happened to; empty where `what` has it. */
  card: string;
  /** The customer whom it is about; empty where the page is about one. */
  customer: string;
  customerPath: string;
  balance: string;
  /** The counter, if it was there. */
  place: string;
  location: string;
  who: string;
  note: string;
  /** The number that a till gave it. */
  receipt: string;
  /** Whether it was undone, or undoes another entry. */
  state: string;
  isReversed: boolean;
  undoPath: string;
  correctPath: string;
  unmergePath: string;
};

export type TimelinePage = { lines: TimelineLine[]; older: string | null };

/** The reader: what the lines offer depends on their role. */
export type TimelineReader = { store: EnteredStore; userId: number; localization: Localization };

/** Renders entries of the history for people. */
@Injectable()
export class Timeline {
  constructor(
    private readonly history: HistoryService,
    private readonly explanations: ExplanationService,
    private readonly names: ActorNames,
    private readonly templates: TemplatesService,
    private readonly times: StoreTimes,
  ) {}

  /**
   * Lists entries, newest first.
   * @param after the `older` of the page before; null for the newest
   * @param showsCustomers whether the lines name the customers whom they are about
   */
  async list(
    reader: TimelineReader,
    filter: HistoryFilter,
    page: { after: string | null; limit: number; showsCustomers: boolean },
  ): Promise<TimelinePage> {
    const find = await this.history.list(reader.store.id, filter, null);
    const entries = await find({ after: parseCursorKey(page.after), limit: page.limit + 1 });
    const { page: visible, last } = takePage(entries, page.limit);
    return {
      lines: await this.toLines(reader, visible, page.showsCustomers),
      older: last ? toCursorKey(last.entry).join('-') : null,
    };
  }

  /** Lists the last entries of several customer cards together, newest first. */
  async listOfCards(
    reader: TimelineReader,
    customerCardIds: number[],
    limit: number,
  ): Promise<TimelinePage> {
    const lists = await Promise.all(
      customerCardIds.map(async (customerCardId) => {
        const filter = { ...NO_FILTER, customerCardId };
        const find = await this.history.list(reader.store.id, filter, null);
        return find({ after: null, limit });
      }),
    );
    const entries = lists
      .flat()
      .sort((a, b) => (isAfter(a.entry.position, b.entry.position) ? -1 : 1));
    return { lines: await this.toLines(reader, entries.slice(0, limit), false), older: null };
  }

  /** Describes what one entry did, and when. */
  async describe(
    { store, localization: { t, locale } }: TimelineReader,
    entry: DetailedEntry,
  ): Promise<{ what: string; at: string }> {
    const { minute } = await this.times.createFormats(store.id, locale);
    const what = describeEntry(toTimelineEntry(entry, null), t.customerPages.timeline);
    const card = (await this.findCards([entry])).get(entry.entry.cardId ?? 0);
    return {
      what: card === undefined ? what : `${what} · ${card.template.name}`,
      at: minute(new Date(entry.entry.occurredAt)),
    };
  }

  private async toLines(
    reader: TimelineReader,
    entries: DetailedEntry[],
    showsCustomers: boolean,
  ): Promise<TimelineLine[]> {
    const { store, localization } = reader;
    const customers = entries.map(({ entry }): Actor => ({
      type: 'customer',
      id: entry.customerId ?? 0,
    }));
    const [cards, locations, names, { minute }] = await Promise.all([
      this.findCards(entries),
      this.explanations.findLocationNames(entries.flatMap(({ entry }) => entry.locationId ?? [])),
      this.names.findNames(customers),
      this.times.createFormats(store.id, localization.locale),
    ]);
    return entries.map((detailed, i) => {
      const { entry } = detailed;
      const { name, cardId, locationId } = entry;
      const card = cards.get(cardId ?? 0)?.template;
      const location = locations.get(locationId ?? 0) ?? '';
      const isOfCard = name.startsWith('card.');
      const isOfLocation = name.startsWith('location.');
      const subject = isOfCard ? (card?.name ?? null) : isOfLocation ? location : null;
      return {
        ...renderLine(reader, detailed, {
          minute,
          subject,
          full: card?.stampsRequired ?? 0,
          // Of an erased customer there is no name, and nothing to put right.
          canChange: names[i] !== null,
        }),
        card: isOfCard ? '' : (card?.name ?? ''),
        customer:
          showsCustomers && entry.customerId !== null
            ? (names[i] ?? localization.t.customerPages.person.erased)
            : '',
        customerPath:
          entry.customerId === null ? '' : `/app/stores/${store.id}/customers/${entry.customerId}`,
        location: isOfLocation ? '' : location,
      };
    });
  }

  private findCards(entries: DetailedEntry[]) {
    return this.templates.load([...new Set(entries.flatMap(({ entry }) => entry.cardId ?? []))]);
  }
}

/** What a line needs besides its entry. @property full the stamps that fill the card */
type LineContext = {
  minute: (time: Date) => string;
  subject: string | null;
  full: number;
  canChange: boolean;
};

function renderLine(
  { store, userId, localization: { t: translations } }: TimelineReader,
  detailed: DetailedEntry,
  { minute, subject, full, canChange }: LineContext,
): Omit<TimelineLine, 'customer' | 'customerPath' | 'card' | 'location'> {
  const t = translations.customerPages.timeline;
  const { entry, event, isLost, actorName, reversedAt } = detailed;
  const { actor } = event.meta;
  const timelineEntry = toTimelineEntry(detailed, subject);
  const { customerId, customerCardId, balance } = entry;
  const base = `/app/stores/${store.id}/customers/${customerId}`;
  const card = customerCardId === null || !canChange ? '' : `${base}/cards/${customerCardId}`;
  const isOwn =
    actor.type === 'user' &&
    actor.id === userId &&
    getNowMs() - Date.parse(entry.recordedAt) < OWN_REVERSAL_MS;
  const mayUndo = isAllowed(store.role, 'reverseCardEvent.any') || isOwn;
  const mayCorrect = isAllowed(store.role, 'adjustCustomerCard') && entry.stamps !== null;
  const canUndo = card !== '' && mayUndo && !isLost && isUndoable(timelineEntry);
  const isAtCounter = entry.channel === 'staff';
  const otherId: unknown = Reflect.get(event.data, 'fromCustomerId');
  const isMerge = entry.name === 'customer.merged' && typeof otherId === 'number';
  return {
    at: minute(new Date(entry.occurredAt)),
    what: describeEntry(timelineEntry, t),
    icon: findIcon(timelineEntry),
    balance:
      entry.stamps === null || balance === null ? '' : describeBalanceAfter(balance, full, t),
    place: isAtCounter ? translations.counter.title : '',
    who: describeAuthor({ type: actor.type, name: actorName }, findText(event.data, 'staffRef'), t),
    note: findNote(event) ?? '',
    receipt: findReceiptOfTill(entry, event) ?? '',
    state: isLost
      ? t.lost
      : reversedAt !== null
        ? t.undone({ when: minute(new Date(reversedAt)) })
        : entry.reverses === null
          ? ''
          : t.undoes,
    isReversed: reversedAt !== null,
    undoPath: canUndo ? `${card}/events/${toPublicEventId(entry.eventId)}/undo` : '',
    correctPath: !canUndo && mayCorrect && card !== '' ? `${card}/adjust` : '',
    unmergePath:
      isMerge && isAllowed(store.role, 'unmergeCustomers') ? `${base}/unmerge/${otherId}` : '',
  };
}

function toTimelineEntry(
  { entry, event, isLost, reversedBy }: DetailedEntry,
  subject: string | null,
): TimelineEntry {
  return {
    name: entry.name,
    stamps: entry.stamps,
    source: entry.source,
    data: isLost ? null : event.data,
    subject,
    isImport: entry.channel === IMPORT_CHANNEL,
    isReversal: entry.reverses !== null,
    isReversed: reversedBy !== null,
  };
}

/** Parses where a page begins; a text that is no cursor begins with the newest. */
function parseCursorKey(after: string | null): CursorKey | null {
  const [, commit, prepare] = /^(\d{1,16})-(\d{1,16})$/.exec(after ?? '') ?? [];
  const key = [Number(commit), Number(prepare)];
  return key.every((part) => Number.isSafeInteger(part)) ? key : null;
}
