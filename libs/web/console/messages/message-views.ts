import { UnavailableError } from '#platform/kernel/errors.js';
import type {
  AnnouncementState,
  Campaign,
  CampaignKind,
  Occasion,
} from '#outbound/campaigns/campaign.js';
import {
  CHANNELS,
  isChannel,
  type HolderChannel,
  type MessageReason,
  type Reach,
} from '#outbound/messages/message-channel.js';
import {
  RECIPIENT_STATES,
  type MessageCounts,
  type MessageRecipient,
  type RecipientState,
} from '#outbound/campaigns/message-recipient.js';
import type { Localization, Translations } from '#translations/translations.js';
import type { Breadcrumb } from '#web/pages/navigation.js';
import { takePage } from '#web/pages/page-query.js';
import { buildMessagesPath, type Tabs } from '../outbox/message-tabs.js';
import { explainNobody, lacksConsent } from './nobody-reached.js';

export type Mood = '' | 'good' | 'bad' | 'warn';

/** A number with its name. */
type Figure = { label: string; value: string };

/** The data of the part `message-reach`. */
export type ReachView = {
  title: string;
  about: string;
  /** Why nobody gets the message; blank: somebody does. */
  nobody: string;
  /** Whether nobody gets it, and some for want of a consent. */
  lacksConsent: boolean;
  figures: Figure[];
  channels: ChannelLine[];
};

/** Whom a channel reaches. @property notes why it does not reach others, or what is to be known */
type ChannelLine = Figure & { notes: string[] };

type RecipientLine = {
  customer: string;
  /** The page of the customer; null once they are no longer one. */
  path: string | null;
  channel: string;
  state: string;
  mood: Mood;
  why: string;
  when: string;
};

/** The data of the part `message-recipients`. */
export type RecipientsView = {
  /** Links that narrow the list to an outcome. */
  filters: Tabs;
  lines: RecipientLine[];
  /** Whether the list is unfolded: a long one stands between what became of the message and how it looks. */
  isOpen: boolean;
  more: string | null;
  first: string | null;
};

/** A box of a form. */
export type ChannelBox = {
  name: string;
  label: string;
  hint: string;
  disabled: boolean;
  checked?: boolean;
};

const STATE_MOODS: Record<RecipientState, Mood> = {
  queued: '',
  sent: 'good',
  failed: 'bad',
  skipped: '',
};

/** Builds the path of the pages of a kind, from the root of the service. */
export function buildCampaignsPath(store: { id: number }, kind: CampaignKind): string {
  return `${buildMessagesPath(store)}/${kind}s`;
}

/** Builds the path of the page of a campaign, from the root of the service. */
export function buildCampaignPath(
  store: { id: number },
  { kind, id }: { kind: CampaignKind; id: number },
): string {
  return `${buildCampaignsPath(store, kind)}/${id}`;
}

/** Builds the path of the page of a campaign that was just saved. */
export function buildSavedPath(
  store: { id: number },
  kind: CampaignKind,
  { id }: { id: number },
  isNew: boolean,
): string {
  return `${buildCampaignPath(store, { kind, id })}?done=${isNew ? 'created' : 'saved'}`;
}

/** Creates the breadcrumb of a page about a campaign. */
export function linkToCampaigns(
  store: { id: number },
  kind: CampaignKind,
  { messagePages: { tabs } }: Translations,
): Breadcrumb {
  return { path: buildCampaignsPath(store, kind), text: tabs[`${kind}s`] };
}

/** Says what became of an announcement. @param counts of its messages */
export function describeState(
  state: AnnouncementState,
  isDue: boolean,
  { queued, sent, failed, people }: Record<'queued' | 'sent' | 'failed' | 'people', number>,
  { t: { messagePages: t } }: Localization,
): { state: string; mood: Mood } {
  if (state === 'sent') {
    return {
      state: t.announcements.reachedOf({ sent, people }),
      mood: sent === 0 || failed > 0 || queued > 0 ? 'warn' : 'good',
    };
  }
  if (state === 'scheduled' && isDue) return { state: t.states.sending, mood: '' };
  return { state: t.states[state], mood: state === 'cancelled' ? 'bad' : '' };
}

/** Says until when all that is left of an announcement waits. @param until undefined: something is being sent */
export function describeWait(
  until: Date | undefined,
  minute: (time: Date) => string,
  { t }: Localization,
): { state?: string } {
  return until === undefined
    ? {}
    : { state: t.messagePages.progress.waiting({ when: minute(until) }) };
}

/** Says whether a rule is on. @param reach of the last days; null: not counted */
export function describeRuleState(
  isEnabled: boolean,
  reach: Pick<Reach, 'people' | 'reached'> | null,
  { t: { messagePages } }: Localization,
): { state: string; mood: Mood } {
  const { on, onWithoutReach, off } = messagePages.rules;
  if (!isEnabled) return { state: off, mood: '' };
  const isWithoutReach = reach !== null && reach.people > 0 && reach.reached === 0;
  return isWithoutReach ? { state: onWithoutReach, mood: 'warn' } : { state: on, mood: 'good' };
}

/** Describes whom a message reaches now. */
export function toReachView(
  reach: Reach,
  channels: readonly HolderChannel[],
  notes: Partial<Record<HolderChannel, string>>,
  localization: Localization,
): ReachView {
  const { reach: t } = localization.t.messagePages;
  const { people, reached } = reach;
  const format = createNumberFormat(localization);
  return {
    title: t.title,
    about: '',
    nobody: explainNobody(reach, localization),
    lacksConsent: lacksConsent(reach),
    figures: [
      { label: t.people, value: format(people) },
      { label: t.reached, value: format(reached) },
      { label: t.unreachable, value: format(people - reached) },
    ],
    channels: listChannelLines(reach, channels, notes, localization),
  };
}

/** Describes whom a rule would have written to. */
export function toPastReachView(
  reach: Reach & { customers: number; days: number },
  channels: readonly HolderChannel[],
  localization: Localization,
): ReachView {
  const { reach: t, rules } = localization.t.messagePages;
  const { people: messages, reached, customers, days } = reach;
  const format = createNumberFormat(localization);
  return {
    title: t.pastTitle({ days }),
    about: t.past,
    nobody: messages > 0 ? explainNobody(reach, localization) : '',
    lacksConsent: lacksConsent(reach),
    figures: [
      { label: rules.messages, value: format(messages) },
      { label: t.toPeople, value: format(customers) },
      { label: rules.undeliverable, value: format(messages - reached) },
    ],
    channels: listChannelLines(reach, channels, {}, localization),
  };
}

function listChannelLines(
  { byChannel, reasons }: Reach,
  channels: readonly HolderChannel[],
  notes: Partial<Record<HolderChannel, string>>,
  localization: Localization,
): ChannelLine[] {
  const { channels: names, reach: t, reasons: texts } = localization.t.messagePages;
  const format = createNumberFormat(localization);
  return channels.map((channel) => ({
    label: names[channel],
    value: format(byChannel[channel]),
    notes: [
      ...(notes[channel] ? [notes[channel]] : []),
      ...reasons
        .filter((entry) => entry.channel === channel)
        .map(({ reason, people }) => t.reason({ reason: texts[reason], people })),
    ],
  }));
}

function createNumberFormat({ locale }: Localization): (number: number) => string {
  const numbers = new Intl.NumberFormat(locale);
  return (number) => numbers.format(number);
}

/** @param customers the path of the list of customers */
function toRecipientLine(
  recipient: MessageRecipient,
  customers: string,
  { time, campaign }: Pick<RecipientsPlace, 'time' | 'campaign'>,
  localization: Localization,
): RecipientLine {
  const { t } = localization;
  const { customerName, channel, finishedAt, dueAt, createdAt } = recipient;
  return {
    customer: customerName ?? t.messagePages.recipients.former,
    path: customerName === null ? null : `${customers}/${recipient.customerId}`,
    channel: channel === null ? '' : t.messagePages.channels[channel],
    ...describeOutcome(recipient, campaign, localization),
    when: time(finishedAt ?? dueAt ?? createdAt),
  };
}

/** Says why a message was not sent. Where no channel is set up, it names the first one. */
export function describeReason(
  reason: MessageReason,
  { kind, channels: [channel] }: Pick<Campaign, 'kind' | 'channels'>,
  { t: { messagePages: t } }: Localization,
): string {
  if (reason !== 'not_set_up' || kind === 'rule' || !channel) return t.reasons[reason];
  return t.recipients.notSetUp({ channel: t.channels[channel] });
}

function describeOutcome(
  { state, arrival, reason }: MessageRecipient,
  campaign: RecipientsPlace['campaign'],
  localization: Localization,
): Pick<RecipientLine, 'state' | 'mood' | 'why'> {
  const { messagePages: t, outbox } = localization.t;
  const why = reason === null ? '' : describeReason(reason, campaign, localization);
  if (arrival === null) return { state: t.recipients.states[state], mood: STATE_MOODS[state], why };
  if (arrival === 'pending')
    return { state: outbox.states.held, mood: 'warn', why: t.reasons.pending };
  return { state: outbox.states[arrival], mood: arrival === 'delivered' ? 'good' : 'bad', why };
}

const MAX_OPEN_RECIPIENTS = 5;

/** How many recipients a page shows. */
export const RECIPIENT_PAGE_SIZE = 50;

/** @property base the path of the page @property time formats a time */
type RecipientsPlace = {
  base: string;
  campaign: Pick<Campaign, 'kind' | 'accountId' | 'channels'>;
  after: number[] | null;
  state: RecipientState | null;
  /** Whether somebody has followed a link of the list. */
  isChosen: boolean;
  counts: MessageCounts | null;
  time: (at: Date) => string;
};

/** Creates a page of recipients, one of which may be beyond it. */
export function createRecipientsView(
  recipients: readonly MessageRecipient[],
  place: RecipientsPlace,
  localization: Localization,
): RecipientsView {
  const { base, campaign, after, state, isChosen, counts } = place;
  const key = campaign.kind === 'rule' ? 'id' : 'customerId';
  const { recipients: t } = localization.t.messagePages;
  const { page, last } = takePage(recipients, RECIPIENT_PAGE_SIZE);
  const customers = `/app/stores/${campaign.accountId}/customers`;
  const linkTo = (parameters: Record<string, string | null>) => {
    const chosen = Object.entries(parameters).filter(([, value]) => value !== null);
    const search = new URLSearchParams(chosen as [string, string][]).toString();
    return `${base}${search ? `?${search}` : ''}#recipients`;
  };
  const filters = [null, ...RECIPIENT_STATES].filter(
    (filter) => filter === null || filter === state || counts === null || counts[filter] > 0,
  );
  return {
    filters: {
      label: t.filter,
      tabs: filters.map((filter) => ({
        path: linkTo({ state: filter ?? 'all' }),
        text: filter === null ? t.all : t.states[filter],
        isCurrent: filter === state,
      })),
    },
    lines: page.map((recipient) => toRecipientLine(recipient, customers, place, localization)),
    isOpen: page.length <= MAX_OPEN_RECIPIENTS || isChosen,
    more: last ? linkTo({ state, after: String(last[key]) }) : null,
    first: after === null ? null : linkTo({ state: state ?? 'all' }),
  };
}

/** Parses the outcome that a list of recipients is narrowed to. @returns null for all */
export function parseRecipientState(value: unknown): RecipientState | null {
  return RECIPIENT_STATES.find((state) => state === value) ?? null;
}

export function formatSent(
  { sent, people }: { sent: number; people: number },
  { t: { messagePages: t } }: Localization,
): string {
  if (people === 0) return '';
  return t.announcements.sentOf({ sent, people });
}

/** Says what a rule does, such as "1 stamp away from a reward". */
export function describeRule(
  { kind, threshold }: Pick<Occasion, 'kind' | 'threshold'>,
  { t }: Localization,
): string {
  const text = t.messagePages.rules.describe[kind];
  return typeof text === 'string' ? text : text({ count: threshold ?? 0 });
}

/** Lists a box for each channel, those that are ticked first, in the order of preference. */
export function listChannelBoxes(
  chosen: readonly string[],
  setUp: Record<HolderChannel, boolean>,
  { t: { messagePages: t } }: Localization,
): ChannelBox[] {
  const order = [...new Set([...chosen.filter(isChannel), ...CHANNELS])];
  return order.map((channel) => ({
    name: `channels:${channel}`,
    label: t.channels[channel],
    hint: setUp[channel] ? t.channelHints[channel] : t.form.notSetUp,
    disabled: !setUp[channel],
    ...(!setUp[channel] && { checked: false }),
  }));
}

/** Awaits a count that a page only shows. @returns null while too many counts of the store wait */
export async function skipWhenBusy<R>(count: Promise<R>): Promise<R | null> {
  try {
    return await count;
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}
