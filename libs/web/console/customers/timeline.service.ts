import { Injectable } from '@nestjs/common';
import { getNowMs } from '#platform/kernel/clock.js';
import type { Actor } from '#platform/kernel/aggregate.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { isAfter } from '#platform/event-store/port/position.js';
import type { CursorKey } from '#platform/http/page.js';
import { ActorNames } from '#loyalty/history/actor-names.service.js';
import { ExplanationService } from '#loyalty/history/explanation.service.js';
import { findNote, type DetailedEntry } from '#loyalty/history/history-entry.dto.js';
import { NO_FILTER, toCursorKey, type HistoryFilter } from '#loyalty/history/history-query.js';
import { HistoryService } from '#loyalty/history/history.service.js';
import { isAllowed } from '#identity/roles.js';
import type { EnteredStore } from '#web/pages/current-user.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import type { Localization } from '#translations/translations.js';
import { takePage } from '#web/pages/page-query.js';
import {
  describeAuthor,
  describeEntry,
  isUndoable,
  findText,
  type TimelineEntry,
} from './timeline.js';

/** How long staff may undo what they did themselves. */
const OWN_REVERSAL_MS = 10 * 60_000;

/** A line of a timeline. Paths are from the root of the service. */
export type TimelineLine = {
  at: string;
  what: string;
  /** The customer whom it is about; empty where the page is about one. */
  customer: string;
  customerPath: string;
  change: string;
  balance: string;
  location: string;
  who: string;
  note: string;
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
    return {
      what: describeEntry(toTimelineEntry(entry), t.customerPages.timeline),
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
      id: showsCustomers ? (entry.customerId ?? 0) : 0,
    }));
    const [locations, names, { minute }] = await Promise.all([
      this.explanations.findLocationNames(entries.flatMap(({ entry }) => entry.locationId ?? [])),
      showsCustomers ? this.names.findNames(customers) : [],
      this.times.createFormats(store.id, localization.locale),
    ]);
    return entries.map((detailed, i) => {
      const { entry } = detailed;
      return {
        ...renderLine(reader, detailed, minute),
        customer:
          showsCustomers && entry.customerId !== null
            ? (names[i] ?? localization.t.customerPages.person.erased)
            : '',
        customerPath:
          entry.customerId === null ? '' : `/app/stores/${store.id}/customers/${entry.customerId}`,
        // What happened to a location itself names it already.
        location: entry.name.startsWith('location.')
          ? ''
          : (locations.get(entry.locationId ?? 0) ?? ''),
      };
    });
  }
}

function renderLine(
  { store, userId, localization: { t: translations, locale } }: TimelineReader,
  detailed: DetailedEntry,
  minute: (time: Date) => string,
): Omit<TimelineLine, 'customer' | 'customerPath' | 'location'> {
  const t = translations.customerPages.timeline;
  const changes = new Intl.NumberFormat(locale, { signDisplay: 'exceptZero' });
  const { entry, event, isLost, actorName, reversedAt } = detailed;
  const { actor } = event.meta;
  const timelineEntry = toTimelineEntry(detailed);
  const { customerId, customerCardId, balance } = entry;
  const base = `/app/stores/${store.id}/customers/${customerId}`;
  const card = customerCardId === null ? '' : `${base}/cards/${customerCardId}`;
  const isOwn =
    actor.type === 'user' &&
    actor.id === userId &&
    getNowMs() - Date.parse(entry.recordedAt) < OWN_REVERSAL_MS;
  const mayUndo = isAllowed(store.role, 'reverseCardEvent.any') || isOwn;
  const mayCorrect = isAllowed(store.role, 'adjustCustomerCard') && entry.stamps !== null;
  const canUndo = card !== '' && mayUndo && !isLost && isUndoable(timelineEntry);
  const otherId: unknown = Reflect.get(event.data, 'fromCustomerId');
  const isMerge = entry.name === 'customer.merged' && typeof otherId === 'number';
  return {
    at: minute(new Date(entry.occurredAt)),
    what: describeEntry(timelineEntry, t),
    change: entry.stamps === null ? '' : changes.format(entry.stamps),
    balance: entry.stamps === null || balance === null ? '' : t.balanceAfter({ count: balance }),
    who: describeAuthor({ type: actor.type, name: actorName }, findText(event.data, 'staffRef'), t),
    note: findNote(event) ?? '',
    receipt: findText(event.data, 'externalRef') ?? '',
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

export function toTimelineEntry({
  entry,
  event,
  isLost,
  reversedBy,
}: DetailedEntry): TimelineEntry {
  return {
    name: entry.name,
    stamps: entry.stamps,
    source: entry.source,
    data: isLost ? null : event.data,
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
