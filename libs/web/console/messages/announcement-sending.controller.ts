import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { RejectedError } from '#platform/kernel/errors.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { ISSUES } from '#translations/issues.js';
import { Throttle } from '#platform/http/throttle.js';
import { CancelAnnouncement, SendAnnouncement } from '#outbound/campaigns/campaign.commands.js';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import type { Translations, Localization } from '#translations/translations.js';
import { parseLocalTime, renderLocalTime } from '#web/pages/local-time.js';
import { findFlashMessage, parseCursor } from '#web/pages/page-query.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, askToConfirm, redirectTo, showPage } from '#web/pages/page-results.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { buildAnnouncementsPath } from './announcement-pages.controller.js';
import { MESSAGE_STYLE, MessageStores } from './message-stores.service.js';
import {
  createRecipientsView,
  getAnnouncementMood,
  RECIPIENT_PAGE_SIZE,
  skipWhenBusy,
  toReachView,
  type Mood,
  type PreviewView,
  type ReachView,
  type RecipientsView,
} from './message-views.js';

type DetailData = {
  base: string;
  list: string;
  title: string;
  state: string;
  mood: Mood;
  when: string;
  flash: string;
  isOpen: boolean;
  sendAt: string;
  sendAtHint: string;
  quiet: string;
  reach: ReachView | null;
  preview: PreviewView;
  recipients: RecipientsView | null;
};

type DetailState = Rejectable & {
  done?: unknown;
  after?: number[] | null;
  sendAt?: string;
};

const view = loadView<DetailData>(import.meta.url, './views/announcement.eta');

/** Serves the page of a one-off message, on which it is sent, scheduled and cancelled. */
@Controller('app/stores/:account_id/messages/announcements/:id')
export class AnnouncementSendingController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly audiences: Audiences,
    private readonly stores: MessageStores,
    private readonly times: StoreTimes,
    private readonly commands: FormCommands,
  ) {}

  @GetPage('getAnnouncement')
  @Throttle(30)
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query() { done, after }: { done?: unknown; after?: unknown },
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('announcement', store.id, parsePathId(id));
    return this.send(localization, store, current, { done, after: parseCursor(after) });
  }

  @GetPage('sendAnnouncement', 'send')
  @Throttle(30)
  async askToSend(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('announcement', store.id, parsePathId(id));
    const texts = localization.t.messagePages.detail;
    const { people, reached } = await this.count(current);
    const path = `${buildAnnouncementsPath(store)}/${current.id}`;
    return askToConfirm({
      question: texts.askSend,
      about: current.title,
      text: texts.askSendText({ people, reached }),
      yes: texts.sendYes,
      no: texts.sendNo,
      back: path,
    });
  }

  @PostForm('sendAnnouncement', 'send', 30)
  async sendNow(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const command = new SendAnnouncement(context, parsePathId(id), null);
    return this.execute(localization, store, { id: command.id, done: 'sent' }, () =>
      this.commands.execute(command),
    );
  }

  @PostForm('sendAnnouncement', 'schedule', 30)
  async schedule(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() { send_at: sendAt = '' }: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    const at = parseLocalTime(sendAt, await this.times.getTimeZone(store.id));
    return this.execute(localization, store, { id, done: 'scheduled', sendAt }, async () => {
      if (!at) {
        throw new RejectedError({ send_at: [ISSUES.send_at_missing] });
      }
      return this.commands.execute(new SendAnnouncement(context, id, at));
    });
  }

  @GetPage('cancelAnnouncement', 'cancel')
  async askToCancel(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('announcement', store.id, parsePathId(id));
    const texts = localization.t.messagePages.detail;
    const path = `${buildAnnouncementsPath(store)}/${current.id}`;
    return askToConfirm({
      question: texts.askCancel,
      about: current.title,
      text: texts.askCancelText,
      yes: texts.cancelYes,
      no: texts.cancelNo,
      back: path,
    });
  }

  @PostForm('cancelAnnouncement', 'cancel')
  async cancel(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const command = new CancelAnnouncement(context, parsePathId(id));
    return this.execute(localization, store, { id: command.id, done: 'cancelled' }, () =>
      this.commands.execute(command),
    );
  }

  /** Executes what a form asks for, and shows the message with what came of it. */
  private async execute(
    localization: Localization,
    store: EnteredStore,
    { id, done, sendAt }: { id: number; done: string; sendAt?: string },
    execute: () => Promise<AnnouncementJson>,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('announcement', store.id, id);
    try {
      await execute();
      return redirectTo(`${buildAnnouncementsPath(store)}/${id}?done=${done}`);
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.send(localization, store, current, {
        errors,
        ...(sendAt !== undefined && { sendAt }),
      });
    }
  }

  private async send(
    localization: Localization,
    store: EnteredStore,
    current: AnnouncementJson,
    { done, after = null, sendAt, errors }: DetailState,
  ): Promise<PageResult> {
    const t = localization.t.messagePages;
    const base = `${buildAnnouncementsPath(store)}/${current.id}`;
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const zone = await this.times.getTimeZone(store.id);
    const { state, send_at, channels } = current;
    const isOpen = state === 'draft' || state === 'scheduled';
    const reach = isOpen ? await skipWhenBusy(this.count(current)) : null;
    return showPage({
      view,
      title: current.title,
      errors,
      styles: [MESSAGE_STYLE],
      data: {
        base,
        list: buildAnnouncementsPath(store),
        title: current.title,
        state: t.states[state],
        mood: getAnnouncementMood(state),
        when: describeTime(current, minute, t.detail),
        flash: findFlashMessage(done, t.detail.done),
        isOpen,
        sendAt: sendAt ?? (send_at === null ? '' : renderLocalTime(new Date(send_at), zone)),
        sendAtHint: t.detail.sendAtHint({ zone }),
        quiet: await this.stores.describeQuietHours(store.id, localization),
        reach: reach && toReachView(reach, channels, null, localization),
        preview: await this.stores.createPreview(store.id, current, localization),
        recipients: isOpen
          ? null
          : createRecipientsView(
              await this.campaigns.listRecipients('announcement', store.id, current.id, null, {
                after,
                limit: RECIPIENT_PAGE_SIZE + 1,
              }),
              { base, accountId: store.id, after, key: 'customerId', time: minute },
              localization,
            ),
      },
    });
  }

  private count(current: AnnouncementJson) {
    const audience = {
      cardId: current.card_id,
      minStamps: current.min_stamps,
      birthdayMonth: current.birthday_month,
      inactiveSince: current.inactive_since,
    };
    return this.audiences.preview(current.account_id, audience, current.channels);
  }
}

function describeTime(
  { state, send_at }: AnnouncementJson,
  minute: (time: Date) => string,
  t: Translations['messagePages']['detail'],
): string {
  if (send_at === null) return '';
  if (state === 'scheduled') return t.sendsAt({ when: minute(new Date(send_at)) });
  return state === 'cancelled' ? '' : t.sentAt({ when: minute(new Date(send_at)) });
}
