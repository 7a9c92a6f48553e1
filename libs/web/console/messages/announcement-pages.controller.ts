import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { Form } from '#platform/http/body-kinds.js';
import { readFields } from '#platform/http/dtos.js';
import { parsePathId } from '#platform/http/path.js';
import { Throttle } from '#platform/http/throttle.js';
import { CreateCampaign, UpdateCampaign } from '#outbound/campaigns/campaign.commands.js';
import {
  CreateAnnouncementDto,
  PreviewAnnouncementDto,
  toAnnouncementAttributes,
  toAudience,
  type AnnouncementJson,
} from '#outbound/campaigns/announcement.dto.js';
import { CampaignsService } from '#outbound/campaigns/campaigns.service.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import { loadAsset } from '#web/pages/assets.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { renderLocalTime } from '#web/pages/local-time.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, showPage, redirectTo } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { parseCursor, takePage } from '#web/pages/page-query.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { listMonths } from '../customers/customer-list.controller.js';
import { buildMessagesPath, createMessageTabs, type MessageTabs } from '../outbox/message-tabs.js';
import { announcementForm, type AnnouncementForm } from './message-form.dto.js';
import { MESSAGE_STYLE, MessageStores, type FormChoices } from './message-stores.service.js';
import {
  formatSent,
  getAnnouncementMood,
  skipWhenBusy,
  toReachView,
  type Mood,
  type PreviewView,
  type ReachView,
} from './message-views.js';

type ListData = {
  tabs: MessageTabs;
  base: string;
  lines: { path: string; title: string; state: string; mood: Mood; when: string; sent: string }[];
  older: string | null;
};

type FormData = FormChoices & {
  title: string;
  action: string;
  back: string;
  months: { value: string; text: string }[];
  reach: ReachView | null;
  preview: PreviewView;
};

/** What a form shows. @property current null for a new message */
type FormState = Rejectable & {
  current: AnnouncementJson | null;
  values: AnnouncementForm;
};

const listView = loadView<ListData>(import.meta.url, './views/announcements.eta');
const formView = loadView<FormData>(import.meta.url, './views/announcement-form.eta');
const SCRIPT = loadAsset(import.meta.url, './assets/message-form.js');
const PAGE_SIZE = 30;

/** Serves the list of one-off messages, and the form in which one is written. */
@Controller('app/stores/:account_id/messages/announcements')
export class AnnouncementPagesController {
  constructor(
    private readonly campaigns: CampaignsService,
    private readonly audiences: Audiences,
    private readonly stores: MessageStores,
    private readonly times: StoreTimes,
    private readonly commands: FormCommands,
  ) {}

  @GetPage('listAnnouncements')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query('after') afterParameter: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const t = localization.t.messagePages;
    const base = buildAnnouncementsPath(store);
    const after = parseCursor(afterParameter);
    const announcements = await this.campaigns.list('announcement', store.id, {
      after,
      limit: PAGE_SIZE + 1,
    });
    const { page, last } = takePage(announcements, PAGE_SIZE);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const lines = page.map((one) => ({
      path: `${base}/${one.id}`,
      title: one.title,
      state: t.states[one.state],
      mood: getAnnouncementMood(one.state),
      when: minute(new Date(one.send_at ?? one.updated_at)),
      sent: formatSent(one.counts, localization),
    }));
    return showPage({
      view: listView,
      title: t.announcements.title,
      data: {
        tabs: createMessageTabs(store, 'announcements', localization.t),
        base,
        lines,
        older: last ? `${base}?after=${last.id}` : null,
      },
    });
  }

  @GetPage('createAnnouncement', 'new')
  @Throttle(60)
  async begin(
    @CurrentStore() store: EnteredStore,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.showForm(localization, store, {
      current: null,
      values: announcementForm.toValues({}),
    });
  }

  @PostForm('createAnnouncement')
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const values = announcementForm.read(form);
    const state: FormState = { current: null, values };
    if (form['step'] === 'count') return this.showForm(localization, store, state);
    try {
      const attributes = { ...(await this.parse(store, values)), state: 'draft' as const };
      const { id } = await this.commands.execute(
        new CreateCampaign(context, 'announcement', attributes),
      );
      return redirectTo(`${buildAnnouncementsPath(store)}/${id}?done=created`);
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showForm(localization, store, { ...state, errors });
    }
  }

  @GetPage('updateAnnouncement', ':id/edit')
  @Throttle(60)
  async edit(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('announcement', store.id, parsePathId(id));
    const zone = await this.times.getTimeZone(store.id);
    const { inactive_since: since } = current;
    const values = announcementForm.toValues({
      ...current,
      inactive_since: since && renderLocalTime(new Date(since), zone).slice(0, 10),
    });
    return this.showForm(localization, store, { current, values });
  }

  @PostForm('updateAnnouncement', ':id/edit')
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') id: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const current = await this.campaigns.get('announcement', store.id, parsePathId(id));
    const values = announcementForm.read(form);
    const state: FormState = { current, values };
    if (form['step'] === 'count') return this.showForm(localization, store, state);
    try {
      const changes = await this.parse(store, values);
      await this.commands.execute(new UpdateCampaign(context, 'announcement', current.id, changes));
      return redirectTo(`${buildAnnouncementsPath(store)}/${current.id}?done=saved`);
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showForm(localization, store, { ...state, errors });
    }
  }

  /** Parses the fields by the rules of the API, in the store's time zone. @throws InvalidFieldsError */
  private async parse(store: EnteredStore, values: AnnouncementForm) {
    const zone = await this.times.getTimeZone(store.id);
    return toAnnouncementAttributes(readFields(CreateAnnouncementDto, values, zone));
  }

  private async showForm(
    localization: Localization,
    store: EnteredStore,
    { current, values, errors }: FormState,
  ): Promise<PageResult> {
    const { form: t } = localization.t.messagePages;
    const base = buildAnnouncementsPath(store);
    const count = await this.count(localization, store, values);
    const title = current ? t.edit : t.create;
    return showPage({
      view: formView,
      title,
      inputs: announcementForm.toInputs(values),
      errors: errors ?? count.errors,
      status: errors ? 422 : 200,
      styles: [MESSAGE_STYLE],
      scripts: [SCRIPT],
      allow: { 'connect-src': ["'self'"] },
      data: {
        ...(await this.stores.listChoices(store.id, values, localization)),
        title,
        action: current ? `${base}/${current.id}/edit` : base,
        back: current ? `${base}/${current.id}` : base,
        months: [{ value: '', text: t.anyMonth }, ...listMonths(localization.locale)],
        reach: count.reach,
        preview: await this.stores.createPreview(store.id, values, localization),
      },
    });
  }

  /** Counts whom the entered message would reach; null with errors in what decides that. */
  private async count(
    localization: Localization,
    store: EnteredStore,
    values: AnnouncementForm,
  ): Promise<Rejectable & { reach: ReachView | null }> {
    try {
      const input = readFields(
        PreviewAnnouncementDto,
        values,
        await this.times.getTimeZone(store.id),
      );
      const { channels } = input;
      const reach = await skipWhenBusy(
        this.audiences.preview(store.id, toAudience(input), channels),
      );
      return { reach: reach && toReachView(reach, channels, null, localization) };
    } catch (error) {
      return { reach: null, errors: describeRejection(error, localization) };
    }
  }
}

/** Builds the path of the pages, from the root of the service. */
export function buildAnnouncementsPath(store: EnteredStore): string {
  return `${buildMessagesPath(store)}/announcements`;
}
