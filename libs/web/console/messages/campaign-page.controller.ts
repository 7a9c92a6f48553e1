import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { RejectedError } from '#platform/kernel/errors.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { Throttle } from '#platform/http/throttle.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import type { Announcement, Campaign } from '#outbound/campaigns/campaign.js';
import {
  CancelAnnouncement,
  DeleteRule,
  SendAnnouncement,
  UpdateCampaign,
} from '#outbound/campaigns/campaign.commands.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import type { RuleOccasion } from '#outbound/campaigns/message-rule.dto.js';
import { RuleReaches } from '#outbound/campaigns/rule-reaches.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { parseLocalTime, renderLocalTime } from '#web/pages/local-time.js';
import { findFlashMessage, parseCursor } from '#web/pages/page-query.js';
import { type PageResult, askToConfirm, redirectTo, showPage } from '#web/pages/page-results.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { loadView } from '#web/pages/view.js';
import { ISSUES } from '#translations/issues.js';
import type { Translations, Localization } from '#translations/translations.js';
import { MESSAGE_STYLE, MessageStores } from './message-stores.service.js';
import {
  buildCampaignsPath,
  createRecipientsView,
  describeRule,
  getAnnouncementMood,
  RECIPIENT_PAGE_SIZE,
  skipWhenBusy,
  toReachView,
  type Mood,
  type PreviewView,
  type ReachView,
  type RecipientsView,
} from './message-views.js';

/** The days that the page of a rule looks back. */
const DAYS = 30;
const MAX_OCCASIONS = 10;

type OccasionLine = { customer: string; path: string | null; when: string; channel: string };

/**
 * @property sending null: it has begun, or is a rule
 * @property rule null: it is an announcement
 * @property recipients null: there are none yet
 */
type CampaignData = {
  base: string;
  list: string;
  all: string;
  title: string;
  state: string;
  mood: Mood;
  about: string;
  flash: string;
  quiet: string;
  sending: { sendAt: string; sendAtHint: string } | null;
  rule: {
    enabled: boolean;
    byDay: { day: string; people: string; share: number }[];
    occasions: OccasionLine[];
  } | null;
  reach: ReachView | null;
  preview: PreviewView;
  recipients: RecipientsView | null;
};
/** What differs between the kinds. */
type OwnData = Omit<CampaignData, 'base' | 'list' | 'title' | 'quiet' | 'preview' | 'recipients'>;

type Place = { done?: unknown; after?: unknown };
type AnnouncementState = Rejectable & Place & { sendAt?: string };

const view = loadView<CampaignData>(import.meta.url, './views/campaign.eta');

/** Serves the page of a message: an announcement is sent, scheduled and cancelled there, and a rule switched on and off. */
@Controller('app/stores/:account_id/messages')
export class CampaignPageController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly audiences: Audiences,
    private readonly reaches: RuleReaches,
    private readonly stores: MessageStores,
    private readonly times: StoreTimes,
    private readonly commands: FormCommands,
  ) {}

  @GetPage('getAnnouncement', 'announcements/:id')
  @Throttle(30)
  async showAnnouncement(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query() place: Place,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.findAnnouncement(store, id);
    return this.renderAnnouncement(localization, store, current, place);
  }

  @GetPage('sendAnnouncement', 'announcements/:id/send')
  @Throttle(30)
  async askToSend(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.findAnnouncement(store, id);
    const t = localization.t.messagePages.detail;
    const { people, reached } = await this.count(current);
    return askToConfirm({
      question: t.askSend,
      about: current.title,
      text: t.askSendText({ people, reached }),
      yes: t.sendYes,
      no: t.sendNo,
      back: buildCampaignPath(store, current),
    });
  }

  @PostForm('sendAnnouncement', 'announcements/:id/send', 30)
  async sendNow(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.findAnnouncement(store, id);
    return this.execute(localization, store, current, { done: 'sent' }, () =>
      this.commands.execute(new SendAnnouncement(context, current.id, null)),
    );
  }

  @PostForm('sendAnnouncement', 'announcements/:id/schedule', 30)
  async schedule(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Body() { send_at: sendAt = '' }: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.findAnnouncement(store, id);
    const at = parseLocalTime(sendAt, await this.times.getTimeZone(store.id));
    return this.execute(localization, store, current, { done: 'scheduled', sendAt }, async () => {
      if (!at) throw new RejectedError({ send_at: [ISSUES.send_at_missing] });
      return this.commands.execute(new SendAnnouncement(context, current.id, at));
    });
  }

  @GetPage('cancelAnnouncement', 'announcements/:id/cancel')
  async askToCancel(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.findAnnouncement(store, id);
    const t = localization.t.messagePages.detail;
    return askToConfirm({
      question: t.askCancel,
      about: current.title,
      text: t.askCancelText,
      yes: t.cancelYes,
      no: t.cancelNo,
      back: buildCampaignPath(store, current),
    });
  }

  @PostForm('cancelAnnouncement', 'announcements/:id/cancel')
  async cancel(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.findAnnouncement(store, id);
    return this.execute(localization, store, current, { done: 'cancelled' }, () =>
      this.commands.execute(new CancelAnnouncement(context, current.id)),
    );
  }

  @GetPage('getMessageRule', 'rules/:id')
  @Throttle(30)
  async showRule(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query() place: Place,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const rule = await this.campaigns.find('rule', store.id, parsePathId(id));
    const t = localization.t.messagePages.rules;
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const reach = await skipWhenBusy(this.reaches.count(rule, DAYS));
    const range = { after: null, limit: MAX_OCCASIONS };
    const occasions = reach && (await skipWhenBusy(this.reaches.list(rule, DAYS, range)));
    const enabled = rule.state === 'enabled';
    return this.render(localization, store, rule, place, {
      all: t.all,
      state: enabled ? t.on : t.off,
      mood: enabled ? 'good' : '',
      about: describeRule(rule.trigger, localization),
      flash: findFlashMessage(place.done, t.done),
      sending: null,
      rule: {
        enabled,
        byDay: toDays(reach?.byDay ?? [], localization),
        occasions: (occasions ?? []).map((one) => toOccasionLine(one, store, minute, localization)),
      },
      reach: reach && toReachView(reach, rule.channels, DAYS, localization),
    });
  }

  @PostForm('updateMessageRule', 'rules/:id/switch', 30)
  async switch(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    const [state, done] =
      form['enabled'] === 'yes' ? (['enabled', 'on'] as const) : (['disabled', 'off'] as const);
    await this.commands.execute(new UpdateCampaign(context, 'rule', id, { state }));
    return redirectTo(`${buildCampaignsPath(store, 'rule')}/${id}?done=${done}`);
  }

  @GetPage('deleteMessageRule', 'rules/:id/delete')
  async askToDelete(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const rule = await this.campaigns.find('rule', store.id, parsePathId(id));
    const t = localization.t.messagePages.rules;
    return askToConfirm({
      question: t.askRemove,
      about: rule.title,
      text: t.askRemoveText,
      yes: t.removeYes,
      no: t.removeNo,
      back: buildCampaignPath(store, rule),
    });
  }

  @PostForm('deleteMessageRule', 'rules/:id/delete')
  async delete(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
  ): Promise<PageResult> {
    await this.commands.execute(new DeleteRule(context, parsePathId(id)));
    return redirectTo(`${buildCampaignsPath(store, 'rule')}?done=removed`);
  }

  private findAnnouncement(store: EnteredStore, id: string): Promise<Announcement> {
    return this.campaigns.find('announcement', store.id, parsePathId(id));
  }

  /** Executes what a form asks for, and shows the announcement with what came of it. */
  private async execute(
    localization: Localization,
    store: EnteredStore,
    current: Announcement,
    { done, ...entered }: { done: string; sendAt?: string },
    execute: () => Promise<unknown>,
  ): Promise<PageResult> {
    try {
      await execute();
      return redirectTo(`${buildCampaignPath(store, current)}?done=${done}`);
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.renderAnnouncement(localization, store, current, { ...entered, errors });
    }
  }

  private async renderAnnouncement(
    localization: Localization,
    store: EnteredStore,
    current: Announcement,
    { sendAt, ...place }: AnnouncementState,
  ): Promise<PageResult> {
    const { detail: t, states } = localization.t.messagePages;
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const zone = await this.times.getTimeZone(store.id);
    const { state, channels } = current;
    const isOpen = state === 'draft' || state === 'scheduled';
    const reach = isOpen ? await skipWhenBusy(this.count(current)) : null;
    const chosen = current.sendAt === null ? '' : renderLocalTime(current.sendAt, zone);
    return this.render(localization, store, current, place, {
      all: t.all,
      state: states[state],
      mood: getAnnouncementMood(state),
      about: describeTime(current, minute, t),
      flash: findFlashMessage(place.done, t.done),
      sending: isOpen ? { sendAt: sendAt ?? chosen, sendAtHint: t.sendAtHint({ zone }) } : null,
      rule: null,
      reach: reach && toReachView(reach, channels, null, localization),
    });
  }

  private async render(
    localization: Localization,
    store: EnteredStore,
    campaign: Campaign,
    { after: afterParameter, errors }: Place & Rejectable,
    own: OwnData,
  ): Promise<PageResult> {
    const { kind, id, title } = campaign;
    const base = buildCampaignPath(store, campaign);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const after = parseCursor(afterParameter);
    const key = kind === 'rule' ? ('id' as const) : ('customerId' as const);
    const place = { base, accountId: store.id, after, key, time: minute };
    const range = { after, limit: RECIPIENT_PAGE_SIZE + 1 };
    const recipients = own.sending
      ? null
      : await this.campaigns.listRecipients(kind, store.id, id, null, range);
    return showPage({
      view,
      title,
      errors,
      styles: [MESSAGE_STYLE],
      data: {
        ...own,
        base,
        list: buildCampaignsPath(store, kind),
        title,
        quiet: await this.stores.describeQuietHours(store.id, localization),
        preview: await this.stores.createPreview(store.id, campaign, localization),
        recipients: recipients && createRecipientsView(recipients, place, localization),
      },
    });
  }

  private count({ accountId, trigger, channels }: Announcement) {
    return this.audiences.preview(accountId, trigger, channels);
  }
}

/** Builds the path of the page of a campaign, from the root of the service. */
function buildCampaignPath(store: EnteredStore, { kind, id }: Pick<Campaign, 'kind' | 'id'>) {
  return `${buildCampaignsPath(store, kind)}/${id}`;
}

function describeTime(
  { state, sendAt }: Announcement,
  minute: (time: Date) => string,
  t: Translations['messagePages']['detail'],
): string {
  if (sendAt === null || state === 'cancelled') return '';
  const when = minute(sendAt);
  return state === 'scheduled' ? t.sendsAt({ when }) : t.sentAt({ when });
}

function toOccasionLine(
  { customerId, customerName, at, channel }: RuleOccasion,
  { id }: EnteredStore,
  minute: (time: Date) => string,
  { t: { messagePages: t } }: Localization,
): OccasionLine {
  return {
    customer: customerName ?? t.recipients.erased,
    path: customerName === null ? null : `/app/stores/${id}/customers/${customerId}`,
    when: minute(at),
    channel: channel === null ? t.reach.unreached : t.channels[channel],
  };
}

/** @param byDay only days with somebody, as YYYY-MM-DD */
function toDays(
  byDay: readonly { day: string; people: number }[],
  { locale }: Localization,
): { day: string; people: string; share: number }[] {
  const numbers = new Intl.NumberFormat(locale);
  const days = new Intl.DateTimeFormat(locale, {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  });
  const max = Math.max(1, ...byDay.map(({ people }) => people));
  return byDay.map(({ day, people }) => ({
    day: days.format(new Date(`${day}T00:00:00Z`)),
    people: numbers.format(people),
    share: people / max,
  }));
}
