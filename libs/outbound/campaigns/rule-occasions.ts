import { IMPORT_CHANNEL } from '#loyalty/stamping/customer-card.js';
import { renderSamePerson, renderSurvivorId } from '#loyalty/stamping/same-person.js';
import { UNLOCKED_STAMPS } from '#loyalty/stamping/unlocked-rewards.js';
import type { MessageRule, RuleKind } from './campaign.js';

/**
 * SQL of the occasions of a rule: for each of them the customer, the customer card that it is about, when it was due, its
 * name, and a number that tells occasions of the same time apart. The history names customers who are merged by now: the
 * customer of an occasion is the one who goes on for them, and the visits of both count. Parameters: $1 the store, $2 the
 * card or null, $3 the threshold, and those of the range.
 */

/**
 * What an occasion query looks through: entries of the history by number, those whose occasions are due in a time, or those
 * whose occasions would have been due then by when things happened, however late that was recorded.
 */
export type OccasionRange = 'entries' | 'times' | 'happened';

/** The column that has the time of an entry, and the condition that another one is later. */
const CLOCKS = {
  entries: { at: 'latest_recorded_at', isLater: 'n.seq > h.seq' },
  times: { at: 'latest_recorded_at', isLater: 'n.seq > h.seq' },
  happened: { at: 'occurred_at', isLater: '(n.occurred_at, n.seq) > (h.occurred_at, h.seq)' },
} satisfies Record<OccasionRange, { at: string; isLater: string }>;

/** Whether a range of times goes on after an occasion of its first time, whose number is the parameter $6. */
export type Resumption = 'resumed' | null;

/** The names of events that say that a customer was there. */
const VISITS = `('stamp.earned', 'reward.redeemed', 'customer_card.created')`;

/**
 * Renders the thresholds of cards: of active rewards, or else of the full card.
 * @param rewards the condition of rewards `w` @param cards that of cards `t`
 */
const renderTargets = (rewards: string, cards: string): string => `
    select w.card_id, w.stamps_required as required from rewards w
    where ${rewards} and w.deleted_at is null and w.active
    union
    select t.id, t.stamps_required from cards t
    where ${cards} and not exists (
      select from rewards w
      where w.card_id = t.id and w.deleted_at is null and w.active)`;

const TARGETS = `targets as materialized (${renderTargets('w.account_id = $1', 't.account_id = $1')}
  )`;

/** The customer who goes on for that of the entry. */
const SURVIVOR = renderSurvivorId('h.customer_id');

const DAYS = `make_interval(days => $3::int)`;

/** Entries by their number: later than $4, up to $5. */
const ENTRIES = 'h.seq > $4 and h.seq <= $5';

/**
 * Entries that were recorded `shift` before the range of times: later than $4, up to $5. Times never fall from entry to
 * entry, so they are a range of numbers, by which the entries of a store are indexed.
 */
function renderTimes(range: OccasionRange, shift: string, resumption: Resumption): string {
  const findAfter = (time: string) =>
    `(select find_history_seq(null, ${time}::timestamptz${shift} + interval '1 microsecond'))`;
  const first = findAfter('$4');
  // What happened in the time was recorded then or later.
  if (range === 'happened') {
    return `h.seq >= ${first} and h.occurred_at > $4::timestamptz${shift} and h.occurred_at <= $5::timestamptz${shift}`;
  }
  return `h.seq >= ${resumption === 'resumed' ? `greatest($6::bigint + 1, ${first})` : first} and h.seq < ${findAfter('$5')}`;
}

const OF_CARD = '($2::bigint is null or h.card_id = $2)';

function renderStampsAway(range: OccasionRange): string {
  return `with ${TARGETS}
    select distinct on (h.seq) ${SURVIVOR} as customer_id, h.customer_card_id, h.${CLOCKS[range].at} as at,
      h.event_id::text as occasion, h.seq as tie
    from history h join targets t on t.card_id = h.card_id
    where h.account_id = $1 and h.name = 'stamp.earned' and h.channel <> '${IMPORT_CHANNEL}' and ${OF_CARD}
      and ${range === 'entries' ? ENTRIES : renderTimes(range, '', null)}
      and h.balance < t.required and h.balance >= t.required - $3::int
      and h.balance - h.stamps < t.required - $3::int`;
}

/**
 * Renders the condition that the customer of the entry has no later entry `n` that meets another condition. With the offset
 * each customer is looked up: as a join, it would read the histories of all stores.
 */
function renderNoLater(condition: string, isLater = CLOCKS.times.isLater): string {
  return `not exists (
      select from history n where n.customer_id = h.customer_id and ${isLater} and ${condition} offset 0)`;
}

/** Renders the condition that nobody who is the same person has one. Costs more, and says nothing about most people. */
function renderNoLaterOfOthers(condition: string, isLater = CLOCKS.times.isLater): string {
  return `not exists (
      select from (${renderSamePerson('h.customer_id')}) o join history n on n.customer_id = o.id
      where o.id <> h.customer_id and ${isLater} and ${condition})`;
}

/** Renders the occasions of entries after which nothing happened for so many days. */
function renderUneventful(
  entries: string,
  event: string,
  range: OccasionRange,
  resumption: Resumption,
): string {
  const { at, isLater } = CLOCKS[range];
  const inTime = `${event} and n.${at} <= h.${at} + ${DAYS}`;
  // The offset makes the database look for other customers of a person only where the first condition has left an entry.
  return `select ${SURVIVOR} as customer_id, h.customer_card_id, h.${at} + ${DAYS} as at,
    h.event_id::text as occasion, h.seq as tie
  from (
    select h.* from history h
    where h.account_id = $1 and ${entries} and ${OF_CARD} and ${renderTimes(range, ` - ${DAYS}`, resumption)}
      and ${renderNoLater(inTime, isLater)}
    offset 0) h
  where ${renderNoLaterOfOthers(inTime, isLater)}`;
}

const IS_REDEMPTION = `n.name = 'reward.redeemed' and n.reward_id = h.reward_id and n.card_id = h.card_id`;

const renderRewardUnused = (range: OccasionRange, resumption: Resumption) =>
  renderUneventful(`h.name = 'reward.unlocked'`, IS_REDEMPTION, range, resumption);

const renderInactive = (range: OccasionRange, resumption: Resumption) =>
  renderUneventful(
    `h.name in ${VISITS}`,
    `n.name in ${VISITS} and ($2::bigint is null or n.card_id = $2)`,
    range,
    resumption,
  );

/** $4 and $5 are lists: birthdays with the year of the celebration, and when the day of it began. */
const renderBirthday = (resumption: Resumption) => `
  select c.id as customer_id, null::bigint as customer_card_id, d.at,
    c.id || ' ' || substr(d.birthday, 1, 4) as occasion, c.id as tie
  from unnest($4::text[], $5::timestamptz[]) as d (birthday, at)
  join customers c on c.birthday_date = substr(d.birthday, 6)
    and c.created_at < to_char(d.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  where c.account_id = $1 and c.merged_into is null and c.erased_at is null
    and c.birthday_month = any (array(select substr(m, 6, 2)::smallint from unnest($4::text[]) m))
    and $3::int is null
    ${resumption === 'resumed' ? 'and (c.id > $6 or d.at > (select min(t) from unnest($5::timestamptz[]) t))' : ''}
    and ($2::bigint is null or exists (
      select from customer_cards k
      where k.customer_id = c.id and k.card_id = $2 and k.merged_into is null))`;

/** Renders the query of a kind of rule. @param resumption only for a range of times */
export function renderOccasions(
  kind: RuleKind,
  range: OccasionRange,
  resumption: Resumption = null,
): string {
  switch (kind) {
    case 'stamps_away':
      return renderStampsAway(range);
    case 'reward_unused':
      return renderRewardUnused(range, resumption);
    case 'inactive':
      return renderInactive(range, resumption);
    case 'birthday':
      return renderBirthday(resumption);
  }
}

const IS_VISIT = `n.name in ${VISITS} and (r.trigger ->> 'cardId' is null or n.card_id = (r.trigger ->> 'cardId')::bigint)`;

/**
 * SQL of the condition that what a message `m` by a rule, the campaign `r`, is about has not passed, as far as the history has
 * it.
 */
export const IS_STILL_TRUE = `case r.trigger ->> 'kind'
  when 'birthday' then m.created_at > now() - interval '2 days'
  when 'stamps_away' then exists (
    select from customer_cards o
    join customer_cards k on k.card_id = o.card_id and k.customer_id = ${renderSurvivorId('o.customer_id')}
      and k.merged_into is null
    join lateral (${renderTargets('w.card_id = k.card_id', 't.id = k.card_id')}
    ) t on k.balance < t.required and k.balance >= t.required - (r.trigger ->> 'threshold')::int
    where o.id = m.customer_card_id)
  when 'reward_unused' then exists (
    select from history h
    join customer_cards k on k.card_id = h.card_id and k.customer_id = ${SURVIVOR}
      and k.merged_into is null
    join rewards w on w.id = h.reward_id and w.deleted_at is null and w.active
    where h.event_id = m.occasion::uuid and k.balance >= least(w.stamps_required, ${UNLOCKED_STAMPS})
      and ${renderNoLater(IS_REDEMPTION)} and ${renderNoLaterOfOthers(IS_REDEMPTION)})
  else exists (
    select from history h where h.event_id = m.occasion::uuid
      and ${renderNoLater(IS_VISIT)} and ${renderNoLaterOfOthers(IS_VISIT)})
  end`;

/** Returns the parameters that all occasion queries begin with. */
export function toRuleValues({
  accountId,
  trigger,
}: Pick<MessageRule, 'accountId' | 'trigger'>): unknown[] {
  return [accountId, trigger.cardId, trigger.threshold];
}
