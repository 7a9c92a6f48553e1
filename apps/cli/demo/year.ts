import { findMomentOfDay, readLocalClock } from '#platform/kernel/zoned-time.js';
import { Dice } from './dice.js';
import { createPeople, type Person } from './people.js';
import { CARDS, LOCATIONS, STORE, type CardKey, type DemoLocation, type StaffKey } from './shop.js';

const DAY_MS = 24 * 60 * 60_000;
const HOUR_MS = 60 * 60_000;
const MINUTE_MS = 60_000;

/** The days that the shop has been open. */
const DAYS = 364;
const OPENING_DAYS = 10;
const PEOPLE = 900;
const SEED = 20_260_301;

/** How busy the shop is by month, and by weekday from Sunday. */
const BY_MONTH = [0.85, 0.85, 0.95, 1, 1.1, 1.1, 0.95, 0.9, 1.1, 1.1, 1.15, 1.3];
const BY_WEEKDAY = [1.05, 0.75, 0.9, 0.95, 1, 1.2, 1.45];
/** How many come in each hour from opening on. */
const WORKDAY = { opens: 7, hours: [8, 16, 13, 10, 9, 15, 12, 9, 13, 11, 6] };
const WEEKEND = { opens: 9, hours: [7, 14, 16, 12, 10, 13, 16, 11, 5] };
const CLOSED = new Set(['12-25', '12-26', '01-01']);

/** Something that somebody did in the shop, in ms since 1970. @property customer a place in `people` */
export type Step = { at: number; customer: number } & (
  | { kind: 'join'; card: CardKey; by: StaffKey | 'poster'; sendsLink: boolean }
  | { kind: 'enrol'; card: CardKey; by: StaffKey }
  | ({ kind: 'stamp'; card: CardKey; stamps: number; receipt: string | null } & Visit)
  | ({ kind: 'redeem'; card: CardKey; reward: number } & Visit)
  /** Takes back the last stamping. */
  | { kind: 'reverse'; card: CardKey; by: StaffKey; reason: string }
  | { kind: 'adjust'; card: CardKey; stamps: number; by: StaffKey; reason: string }
  | { kind: 'merge'; other: number }
  | { kind: 'erase' }
);

type Visit = { by: StaffKey; location: DemoLocation['key'] };

type Guest = {
  customer: number;
  /** Visits a day on average. */
  rate: number;
  leavesAt: number;
  home: DemoLocation;
  isPatient: boolean;
  balances: Map<CardKey, number>;
  isGone: boolean;
};

export type Year = { people: Person[]; steps: Step[]; startsAt: number; archivesSummerAt: number };

/** Plays a year of the shop that ends now. The same every time, but for the dates. */
export function playYear(now: Date): Year {
  const today = readLocalClock(STORE.timeZone, now.getTime()).day;
  const dice = new Dice(SEED);
  const people = createPeople(PEOPLE, dice, today);
  const shop = new Shop(dice, people.length);
  const days = Array.from({ length: DAYS }, (_, i) =>
    new Date(Date.parse(`${today}T00:00:00Z`) - (DAYS - 1 - i) * DAY_MS).toISOString().slice(0, 10),
  );
  for (const [i, day] of days.entries()) shop.playDay(day, i);
  shop.playOfficeWork(now.getTime());
  const steps = shop.steps
    .filter(({ at }) => at < now.getTime() - 2 * MINUTE_MS)
    .toSorted((one, other) => one.at - other.at);
  for (const step of steps.filter(({ kind }) => kind === 'join').slice(-6)) {
    if (step.kind === 'join') step.sendsLink = people[step.customer]?.email !== null;
  }
  const [firstDay = today] = days;
  const summerEnds = `${today.slice(0, 4)}-10-01`;
  const lastSummer = summerEnds <= today ? summerEnds : `${Number(today.slice(0, 4)) - 1}-10-01`;
  return {
    people,
    steps,
    startsAt: toTime(firstDay, 6),
    archivesSummerAt: Math.max(toTime(lastSummer, 6), toTime(firstDay, 6.5)),
  };
}

/** Finds when a clock in the shop shows an hour. */
function toTime(day: string, hour: number): number {
  return findOrigin(day) + hour * HOUR_MS;
}

/** Finds what the hours of a day count from. That is its beginning, unless the clock was changed in the night. */
function findOrigin(day: string): number {
  const noon = findMomentOfDay(day, 'start', STORE.timeZone) + 12 * HOUR_MS;
  return noon - readLocalClock(STORE.timeZone, noon).hour * HOUR_MS;
}

class Shop {
  readonly steps: Step[] = [];
  private readonly guests: Guest[] = [];
  private joined = 0;
  private receipts = 1_000;
  /** Of the day that is played, what its hours count from. */
  private origin = 0;

  constructor(
    private readonly dice: Dice,
    private readonly maxPeople: number,
  ) {}

  playDay(day: string, number: number): void {
    if (CLOSED.has(day.slice(5))) return;
    const month = Number(day.slice(5, 7));
    const weekday = new Date(`${day}T00:00:00Z`).getUTCDay();
    const locations = LOCATIONS.filter(({ isOpen }) => isOpen(month, weekday));
    const weather = 0.8 + this.dice.next() * 0.4;
    const pace = (BY_MONTH[month - 1] ?? 1) * (BY_WEEKDAY[weekday] ?? 1) * weather;
    const hours = weekday === 0 || weekday === 6 ? WEEKEND : WORKDAY;
    this.origin = findOrigin(day);
    for (const guest of this.guests) {
      if (guest.isGone || this.origin > guest.leavesAt) continue;
      if (!this.dice.roll(guest.rate * pace)) continue;
      this.visit(guest, this.pickTime(hours), month, locations);
    }
    const newcomers = number < OPENING_DAYS ? 9 : 1.4 + (number / DAYS) * 0.5;
    for (let left = this.dice.count(newcomers * pace); left > 0; left--) {
      this.join(this.pickTime(hours), month, locations);
    }
  }

  /** Plays what the owner does now and then: merges of people who joined twice, and erasures. */
  playOfficeWork(now: number): void {
    const loyal = this.guests.filter(({ isGone }) => !isGone);
    const gone = this.guests.filter(({ leavesAt }) => leavesAt < Infinity);
    for (const guest of gone.slice(0, 6)) {
      this.steps.push({ kind: 'erase', customer: guest.customer, at: guest.leavesAt + 9 * DAY_MS });
    }
    for (let i = 0; i < 4; i++) {
      const [guest, other] = [loyal[40 + i * 11], this.guests.at(-20 - i)];
      if (!guest || !other || guest === other) continue;
      const at = now - (i + 1) * HOUR_MS;
      this.steps.push({ kind: 'merge', customer: guest.customer, other: other.customer, at });
      other.isGone = true;
    }
    // Nobody comes with a card that is no longer theirs.
    const ends = new Map(
      this.steps.flatMap((step) =>
        step.kind === 'merge'
          ? [[step.other, step.at] as const]
          : step.kind === 'erase'
            ? [[step.customer, step.at] as const]
            : [],
      ),
    );
    const possible = this.steps.filter(
      (step) =>
        step.kind === 'merge' ||
        step.kind === 'erase' ||
        step.at < (ends.get(step.customer) ?? Infinity),
    );
    this.steps.splice(0, this.steps.length, ...possible);
  }

  private join(at: number, month: number, locations: DemoLocation[]): void {
    if (this.joined === this.maxPeople) return;
    const { dice } = this;
    const home = dice.pick(locations, ({ share }) => share);
    const customer = this.joined++;
    const isLoyal = dice.roll(0.45);
    const guest: Guest = {
      customer,
      rate: 0.03 + 0.33 * dice.next() ** 4,
      leavesAt: isLoyal ? Infinity : at - Math.log(1 - dice.next()) * 90 * DAY_MS,
      home,
      isPatient: dice.roll(0.7),
      balances: new Map(),
      isGone: false,
    };
    const isSummerGuest = home.key === 'park' && dice.roll(0.6);
    const card = isSummerGuest ? 'summer' : 'coffee';
    const by = dice.roll(0.65) ? 'poster' : dice.pick(home.staff.filter((key) => key !== 'till'));
    this.steps.push({ kind: 'join', customer, at, card, by, sendsLink: false });
    guest.balances.set(card, CARDS[card].card.initial_stamps);
    this.guests.push(guest);
    this.visit(guest, at + 2 * MINUTE_MS, month, [home]);
  }

  private visit(guest: Guest, at: number, month: number, locations: DemoLocation[]): void {
    const { dice } = this;
    const location =
      locations.includes(guest.home) && dice.roll(0.85)
        ? guest.home
        : dice.pick(locations, ({ share }) => share);
    const by = dice.pick(location.staff);
    const card = this.chooseCard(guest, at, month, location, by);
    const visit = { by, location: location.key, customer: guest.customer, card };
    const { rewards } = CARDS[card];
    const balance = guest.balances.get(card) ?? 0;
    const reward = rewards.findLastIndex(
      ({ stamps_required: cost }, i) =>
        balance >= cost && (i === rewards.length - 1 || !guest.isPatient),
    );
    let seconds = 0;
    const { stamps_required: cost = 0 } = rewards[reward] ?? {};
    if (reward >= 0 && dice.roll(0.6)) {
      this.steps.push({ kind: 'redeem', at, reward, ...visit });
      guest.balances.set(card, balance - cost);
      if (dice.roll(0.5)) return;
      seconds = 40;
    }
    this.stamp(guest, { ...visit, at: at + seconds * 1_000 });
  }

  private stamp(
    guest: Guest,
    visit: Visit & { at: number; customer: number; card: CardKey },
  ): void {
    const { dice } = this;
    const { card, at, customer } = visit;
    const stamps = dice.pick([1, 2, 3, 4], (count) => [84, 12, 3, 1][count - 1] ?? 0);
    const receipt = visit.by === 'till' || dice.roll(0.2) ? `K-${++this.receipts}` : null;
    this.steps.push({ kind: 'stamp', stamps, receipt, ...visit });
    const balance = (guest.balances.get(card) ?? 0) + stamps;
    guest.balances.set(card, balance);
    const by = visit.by === 'till' ? 'jonas' : visit.by;
    if (dice.roll(0.008)) {
      const later = at + dice.between(30, 240) * 1_000;
      const reason = dice.pick(['Doppelt gestempelt', 'Falsche Karte', 'Storno']);
      this.steps.push({ kind: 'reverse', customer, card, at: later, by, reason });
      guest.balances.set(card, balance - stamps);
    } else if (dice.roll(0.004)) {
      const later = at + dice.between(5, 25) * MINUTE_MS;
      const reason = dice.pick(['Kulanz: Maschine war defekt', 'Papierkarte übertragen']);
      this.steps.push({
        kind: 'adjust',
        customer,
        card,
        at: later,
        by: 'jonas',
        stamps: 2,
        reason,
      });
      guest.balances.set(card, balance + 2);
    }
  }

  /** Chooses what the guest has this time, and gives them the card for it. */
  private chooseCard(
    guest: Guest,
    at: number,
    month: number,
    location: DemoLocation,
    by: StaffKey,
  ): CardKey {
    const { dice } = this;
    const hour = Math.floor((at - this.origin) / HOUR_MS);
    const isLunch = location.key === 'harbour' && (hour === 12 || hour === 13) && dice.roll(0.45);
    const isSummer = location.key === 'park' && month >= 5 && month <= 9 && dice.roll(0.5);
    const card = isLunch ? 'lunch' : isSummer ? 'summer' : dice.roll(0.05) ? 'beans' : 'coffee';
    if (!guest.balances.has(card)) {
      this.steps.push({
        kind: 'enrol',
        customer: guest.customer,
        card,
        by: by === 'till' ? 'jonas' : by,
        at: at - 30_000,
      });
      guest.balances.set(card, CARDS[card].card.initial_stamps);
    }
    return card;
  }

  private pickTime({ opens, hours }: { opens: number; hours: number[] }): number {
    const places = hours.map((weight, i) => ({ hour: opens + i, weight }));
    const { hour } = this.dice.pick(places, ({ weight }) => weight);
    return this.origin + hour * HOUR_MS + this.dice.between(0, 57 * 60) * 1_000;
  }
}
