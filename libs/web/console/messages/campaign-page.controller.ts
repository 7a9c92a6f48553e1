import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { RejectedError } from '#platform/kernel/errors.js';
import type { Form } from '#platform/http/body-kinds.js';
import { getNow } from '#platform/kernel/clock.js';
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
import { CampaignsService, type CountedCampaign } from '#outbound/campaigns/campaigns.service.js';
import { MessageRecipients } from '#outbound/campaigns/message-recipients.service.js';
import { subtractPending, type MessageCounts } from '#outbound/campaigns/message-recipient.js';
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
import { loadAsset } from '#web/pages/assets.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { loadView } from '#web/pages/view.js';
import { ISSUES } from '#translations/issues.js';
import type { Localization } from '#translations/translations.js';
import {
  askAboutCancelling,
  countPeople,
  describeTime,
  describeRuleOutcome,
  toDays,
  toOccasionLine,
  toProgressView,
  toResultsView,
  type OccasionLine,
  type ProgressView,
  type ResultsView,
} from './campaign-outcome.js';
import {
  chooseRecipient,
  DAYS,
  MAX_OCCASIONS,
  MessagePreviews,
  type PreviewView,
} from './message-previews.service.js';
import { MESSAGE_STYLE, MessageStores } from './message-stores.service.js';
import {
  buildCampaignPath,
  buildCampaignsPath,
  linkToCampaigns,
  createRecipientsView,
  describeRuleState,
  describeState,
  parseRecipientState,
  RECIPIENT_PAGE_SIZE,
  skipWhenBusy,
  toPastReachView,
  type Mood,
  type ReachView,
  type RecipientsView,
} from './message-views.js';

/**
 * @property sending null: it has begun, or is a rule
 * @property rule null: it is an announcement
 * @property recipients null: there are none yet
 */
type CampaignData = {
  base: string;
  title: string;
  state: string;
  mood: Mood;
  about: string;
  flash: string;
  quiet: string;
  sending: { sendAt: string; zone: string; isDraft: boolean } | null;
  rule: {
    enabled: boolean;
    byDay: { day: string; people: string; share: number }[];
    occasions: OccasionLine[];
  } | null;
  /** Null: it has its outcome, is a rule, or waits for its time. */
  progress: ProgressView | null;
  reach: ReachView | null;
  results: ResultsView | null;
  preview: PreviewView;
  recipients: RecipientsView | null;
};
/** What differs between the kinds. */
type OwnData = Omit<CampaignData, 'base' | 'list' | 'title' | 'quiet' | 'recipients'>;

type Place = { done?: unknown; after?: unknown; state?: unknown };
type AnnouncementPlace = Rejectable & Place & { sendAt?: string };

const view = loadView<CampaignData>(import.meta.url, './views/campaign.eta');
const SCRIPT = loadAsset(import.meta.url, './assets/message-progress.js');

/** Serves the page of a message: an announcement is sent, scheduled and cancelled there, and a rule switched on and off. */
@Controller('app/stores/:account_id/messages')
export class CampaignPageController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly recipients: MessageRecipients,
    private readonly audiences: Audiences,
    private readonly reaches: RuleReaches,
    private readonly stores: MessageStores,
    private readonly previews: MessagePreviews,
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
    if (reached === 0) return redirectTo(buildCampaignPath(store, current));
    return askToConfirm({
      question: t.askSend({ people, reached }),
      about: current.title,
      text: `${await this.stores.findQuietNote(store.id, localization)} ${t.askSendText}`.trim(),
      yes: t.sendYes({ reached }),
      no: t.sendNo,
      back: buildCampaignPath(store, current),
      isLoss: false,
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
      ...askAboutCancelling(current, t),
      about: current.title,
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
    const done = current.state === 'draft' ? 'discarded' : 'cancelled';
    return this.execute(localization, store, current, { done }, () =>
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
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const counts = await this.campaigns.countAccepted(rule);
    const reach = await skipWhenBusy(this.reaches.count(rule, DAYS));
    const range = { after: null, limit: MAX_OCCASIONS };
    const occasions = reach && (await skipWhenBusy(this.reaches.list(rule, DAYS, range)));
    const example = chooseRecipient(occasions);
    const enabled = rule.state === 'enabled';
    return this.render(localization, store, rule, place, {
      ...describeRuleState(enabled, reach, localization),
      about: describeRuleOutcome(rule.trigger, counts, localization),
      flash: findFlashMessage(place.done, localization.t.messagePages.rules.done),
      sending: null,
      progress: null,
      results: null,
      counts: null,
      rule: {
        enabled,
        byDay: toDays(reach?.byDay ?? [], localization),
        occasions: (occasions ?? []).map((row) => toOccasionLine(row, store, minute, localization)),
      },
      reach: reach && toPastReachView(reach, rule.channels, localization),
      preview: await this.previews.create(store.id, rule, rule.trigger, example, localization),
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
    return redirectTo(`${buildCampaignPath(store, { kind: 'rule', id })}?done=${done}`);
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

  private findAnnouncement(
    store: EnteredStore,
    id: string,
  ): Promise<CountedCampaign<'announcement'>> {
    return this.campaigns.find('announcement', store.id, parsePathId(id));
  }

  /** Executes what a form asks for, and shows the announcement with what came of it. */
  private async execute(
    localization: Localization,
    store: EnteredStore,
    current: CountedCampaign<'announcement'>,
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
    current: CountedCampaign<'announcement'>,
    { sendAt: enteredAt, ...place }: AnnouncementPlace,
  ): Promise<PageResult> {
    const { detail: t } = localization.t.messagePages;
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const zone = await this.times.getTimeZone(store.id);
    const { id, state, trigger, sendAt: plannedAt } = current;
    const isDue = plannedAt !== null && plannedAt <= getNow();
    const isBeingSent = state === 'sending' || (state === 'scheduled' && isDue);
    const isOpen = state === 'draft' || (state === 'scheduled' && !isDue);
    const stored = await this.campaigns.count(current);
    const unsent = isOpen ? [] : await this.recipients.countUnsent(id);
    const pending = (await this.recipients.countPending('announcement', store.id, [id])).get(id);
    const counts = subtractPending(stored, pending);
    const recipient = await this.previews.findRecipient(store.id, trigger, current.channels);
    const preview = await this.previews.create(store.id, current, trigger, recipient, localization);
    const reach = isOpen ? await skipWhenBusy(this.count(current)) : null;
    const chosen = plannedAt === null ? '' : renderLocalTime(plannedAt, zone);
    const progress = isBeingSent ? toProgressView(counts, unsent, minute, localization) : null;
    const hasBegun = state === 'cancelled' ? current.startedAt !== null : !isOpen;
    const isScheduled = state === 'scheduled' && plannedAt !== null;
    const sendAt = isScheduled ? await this.stores.findAudible(store.id, plannedAt) : plannedAt;
    const flashes = {
      ...t.done,
      // While it waits, such as for the end of the quiet hours, the page says for what.
      sent: progress?.waits.length === 0 ? t.done.sent : '',
      scheduled: isScheduled && sendAt ? t.done.scheduled({ when: minute(sendAt) }) : '',
    };
    return this.render(localization, store, current, place, {
      ...describeState(state, isDue, { ...counts, people: countPeople(counts) }, localization),
      ...(progress?.waiting && { state: progress.waiting }),
      about: describeTime({ state, sendAt }, minute, t),
      flash: findFlashMessage(place.done, flashes),
      sending: isOpen ? { sendAt: enteredAt ?? chosen, zone, isDraft: state === 'draft' } : null,
      rule: null,
      progress,
      reach: reach && (await this.stores.describeReach(store.id, reach, preview, localization)),
      counts: stored,
      results: hasBegun ? toResultsView(current, counts, pending, unsent, localization) : null,
      preview,
    });
  }

  private async render(
    localization: Localization,
    store: EnteredStore,
    campaign: Campaign,
    { after: afterParameter, state: stateParameter, errors }: Place & Rejectable,
    { counts, ...own }: OwnData & { counts: MessageCounts | null },
  ): Promise<PageResult> {
    const { kind, id, title } = campaign;
    const base = buildCampaignPath(store, campaign);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const after = parseCursor(afterParameter);
    const state = parseRecipientState(stateParameter);
    const isChosen = stateParameter !== undefined || after !== null;
    const place = { base, campaign, after, state, isChosen, counts, time: minute };
    const range = { after, limit: RECIPIENT_PAGE_SIZE + 1 };
    const recipients = own.sending
      ? null
      : await this.campaigns.listRecipients(kind, store.id, id, state, range);
    return showPage({
      view,
      title,
      breadcrumb: linkToCampaigns(store, kind, localization.t),
      errors,
      styles: [MESSAGE_STYLE],
      ...(own.progress && { scripts: [SCRIPT], allow: { 'connect-src': ["'self'"] } }),
      data: {
        ...own,
        base,
        title,
        quiet: await this.stores.describeQuietHours(campaign, localization),
        recipients: recipients && createRecipientsView(recipients, place, localization),
      },
    });
  }

  private count({ accountId, trigger, channels }: Announcement) {
    return this.audiences.preview(accountId, trigger, channels);
  }
}
