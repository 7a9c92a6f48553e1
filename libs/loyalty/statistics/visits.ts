import type { LocalClock, LocalTime } from './local-clock.js';

/** A stamping or a redemption of a customer. */
export type Visit = {
  cardId: number;
  locationId: number | null;
  /** Who stamped or handed out the reward, if they were signed in; null: a program did. */
  userId: number | null;
  /** When it happened, in ms since 1970. */
  at: number;
  /** 0 for a redemption. */
  stamps: number;
  isRedemption: boolean;
  /** Its number in the history. */
  seq: number;
  /** The number of the entry that undid it. */
  reversedSeq: number | null;
};

/** A visit that has been added or undone. */
export type ChangedVisit = Omit<Visit, 'stamps' | 'isRedemption' | 'reversedSeq'>;

/** All counts of an hour, by card, location and user. They can be added up over any days. */
export const COUNTS = [
  // Customers who came with a card on a day. Each is counted where and when they were first stamped or handed a reward on
  // it, so that visits of cards, locations, users and hours add up.
  'visits',
  'stamps',
  'redemptions',
  // Customers who joined the store, or got the card, and those whom an import added instead.
  'joined',
  'imported',
  // Customers whose first visit of the day, week or month, or at all, it was.
  'first_of_day',
  'first_of_week',
  'first_of_month',
  'first_of_all',
] as const;

export type Count = (typeof COUNTS)[number];

/** @property cardId 0: all cards @property locationId 0: all locations @property userId 0: whoever did it */
export type Place = { cardId: number; locationId: number; userId: number };

export type Hour = Place & { day: string; hour: number };

/** Counts by hour. */
export class HourCounts {
  private readonly byKey = new Map<string, { hour: Hour; counts: number[] }>();

  /** @param changes in the order of `COUNTS` */
  add({ cardId, locationId, userId, day, hour }: Hour, changes: number[]): void {
    const key = `${cardId} ${locationId} ${userId} ${day} ${hour}`;
    const entry = this.byKey.get(key);
    if (entry) changes.forEach((by, i) => (entry.counts[i] = (entry.counts[i] ?? 0) + by));
    else {
      const place = { cardId, locationId, userId };
      this.byKey.set(key, { hour: { ...place, day, hour }, counts: [...changes] });
    }
  }

  addAll(others: HourCounts): void {
    for (const { hour, counts } of others.byKey.values()) this.add(hour, counts);
  }

  get size(): number {
    return this.byKey.size;
  }

  clear(): void {
    this.byKey.clear();
  }

  /** Lists the hours with their counts in the order of `COUNTS`; those with nothing but zeros are left out. */
  list(): { hour: Hour; counts: number[] }[] {
    return [...this.byKey.values()].filter(({ counts }) => counts.some((count) => count !== 0));
  }
}

/**
 * The entries of the history by which counts change.
 * @property after the number of the last entry that was counted; -1: none was
 * @property upTo the number of the last entry that is to be counted
 */
export type Step = { after: number; upTo: number };

/** What came last at a place, among the visits before a step and among those after it. */
type Last = { before: LocalTime | null; now: LocalTime | null };

/**
 * Adds what a step changes about the visits of one customer. A customer is counted once for a day, week or month: in the
 * hour of their first visit in it, so that counts of hours add up to numbers of customers.
 *
 * It needs few of the visits, because a card can have been stamped for years: those from the first changed one until
 * nothing differs any more, and the last one before them at each place of a changed one.
 */
export class VisitCounter {
  private readonly lasts = new Map<string, Last>();
  private readonly pendingSeqs: Set<number>;
  private readonly openPlaces: Set<string>;

  /** @param changedVisits those that the step adds or undoes; not needed where every visit is added */
  constructor(
    private readonly counts: HourCounts,
    private readonly clock: LocalClock,
    private readonly step: Step,
    changedVisits: ChangedVisit[] = [],
  ) {
    this.pendingSeqs = new Set(changedVisits.map(({ seq }) => seq));
    this.openPlaces = new Set(changedVisits.flatMap((visit) => listPlaces(visit).map(toKey)));
  }

  /** Tells whether more of the visits before the first changed one have to be read. */
  needsEarlier(): boolean {
    return this.openPlaces.size > 0;
  }

  /** Reads the next visit before the first changed one, from there backwards. */
  readEarlier(visit: Visit): void {
    if (!isCounted(visit, this.step.upTo)) return;
    const keys = listPlaces(visit)
      .map(toKey)
      .filter((key) => this.openPlaces.delete(key));
    if (keys.length === 0) return;
    const time = this.clock.read(visit.at);
    for (const key of keys) this.lasts.set(key, { before: time, now: time });
  }

  /** Tells whether more of the visits from the first changed one on have to be added. */
  needsLater(): boolean {
    return (
      this.pendingSeqs.size > 0 ||
      [...this.lasts.values()].some(({ before, now }) => before !== now)
    );
  }

  /** Adds the next visit, in the order in which they happened; of the same time, in the order of the history. */
  add(visit: Visit): void {
    this.pendingSeqs.delete(visit.seq);
    const { after, upTo } = this.step;
    const [was, is] = [isCounted(visit, after), isCounted(visit, upTo)];
    if (!was && !is) return;
    const time = this.clock.read(visit.at);
    const { cardId } = visit;
    const onCard = { ...this.lasts.get(toKey({ cardId, locationId: 0, userId: 0 })) };
    for (const place of listPlaces(visit)) {
      const key = toKey(place);
      let last = this.lasts.get(key);
      if (!last) this.lasts.set(key, (last = { before: null, now: null }));
      if (was !== is || last.before !== last.now || onCard.before !== onCard.now) {
        const before = was ? countVisit(visit, time, last.before, onCard.before) : NOTHING;
        const now = is ? countVisit(visit, time, last.now, onCard.now) : NOTHING;
        const changes = now.map((count, i) => count - (before[i] ?? 0));
        if (changes.some((by) => by !== 0)) this.counts.add({ ...place, ...time }, changes);
      }
      if (was) last.before = time;
      if (is) last.now = time;
    }
  }
}

function toKey({ cardId, locationId, userId }: Place): string {
  return `${cardId} ${locationId} ${userId}`;
}

const NOTHING = COUNTS.map(() => 0);

/** Tells whether a visit had been recorded by a number, and not been undone. */
function isCounted({ seq, reversedSeq }: Visit, upTo: number): boolean {
  return seq <= upTo && (reversedSeq === null || reversedSeq > upTo);
}

/** @param last the visit before it at the same place @param lastOnCard the visit before it on the same card */
function countVisit(
  { isRedemption, stamps }: Visit,
  { day, week, month }: LocalTime,
  last: LocalTime | null,
  lastOnCard: LocalTime | null | undefined,
): number[] {
  const counts: Record<Count, number> = {
    visits: Number(day !== lastOnCard?.day),
    stamps: isRedemption ? 0 : stamps,
    redemptions: Number(isRedemption),
    joined: 0,
    imported: 0,
    first_of_day: Number(day !== last?.day),
    first_of_week: Number(week !== last?.week),
    first_of_month: Number(month !== last?.month),
    first_of_all: Number(last === null),
  };
  return COUNTS.map((name) => counts[name]);
}

/** Lists what a visit counts for: the store, its card, its location, its user, and all of these together. */
function listPlaces({
  cardId,
  locationId,
  userId,
}: Pick<Visit, 'cardId' | 'locationId' | 'userId'>): Place[] {
  const withCard = (place: Place) => [place, { ...place, cardId }];
  const places = withCard({ cardId: 0, locationId: 0, userId: 0 });
  if (locationId !== null) places.push(...withCard({ cardId: 0, locationId, userId: 0 }));
  if (userId === null) return places;
  return [...places, ...places.map((place) => ({ ...place, userId }))];
}

const ONE_JOINED = COUNTS.map((name) => Number(name === 'joined'));
const ONE_IMPORTED = COUNTS.map((name) => Number(name === 'imported'));

/** Adds a customer who joined the store, or got a card. */
export function addJoined(
  counts: HourCounts,
  { cardId, at, isImported }: { cardId: number; at: number; isImported: boolean },
  clock: LocalClock,
): void {
  const hour = { cardId, locationId: 0, userId: 0, ...clock.read(at) };
  counts.add(hour, isImported ? ONE_IMPORTED : ONE_JOINED);
}
