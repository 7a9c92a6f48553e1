import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { getNowMs } from '#platform/kernel/clock.js';
import { findMomentOfDay } from '#platform/kernel/zoned-time.js';
import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import {
  createTimeFormats,
  isDay,
  parseLocalTime,
  renderLocalTime,
} from '#web/pages/local-time.js';
import type { ValuesOf } from '#web/pages/forms.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { describeRejection, type FormErrors, type Rejectable } from '#web/pages/form-errors.js';
import { PUBLIC_EVENTS, type PublicEventType } from '#outbound/public-events/public-events.js';
import { WebhookDeliveriesService } from '#outbound/subscriptions/webhook-deliveries.service.js';
import {
  ReplayDto,
  type DeliveryFilter,
  type DeliveryJson,
  type ReplayJson,
} from '#outbound/subscriptions/webhook-delivery.dto.js';
import { WebhookSubscriptionsService } from '#outbound/subscriptions/webhook-subscriptions.service.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, showPage, redirectTo } from '#web/pages/page-results.js';
import { createFilterChips, describeDays, type FilterChip } from '#web/pages/filter-chips.js';
import { findFlashMessage, parseCursor, takePage } from '#web/pages/page-query.js';
import { replayForm } from './webhook-form.dto.js';
import {
  buildWebhooksPath,
  linkToWebhook,
  listEventChoices,
  renderAttempts,
  renderEventName,
  renderLastTest,
  type AttemptLine,
  type Choices,
  type WebhookState,
} from './webhook-labels.js';

type Line = WebhookState & { path: string; event: string; created: string; attempts: string };
type Fields = { status: string; type: string; from: string; to: string };

type ListView = {
  base: string;
  fields: Fields;
  chips: FilterChip[];
  statuses: Choices;
  events: Choices;
  lines: Line[];
  lastTest: string;
  newest: string;
  older: string;
};

type DetailView = WebhookState & {
  base: string;
  event: string;
  id: string;
  created: string;
  next: string;
  delivered: string;
  flash: string;
  enabled: boolean;
  attempts: AttemptLine[];
};

type ReplayFields = ValuesOf<typeof replayForm> & { scope: string };

type ReplayView = {
  action: string;
  back: string;
  about: string;
  zone: string;
  events: Choices;
};

const listView = loadView<ListView>(import.meta.url, './views/deliveries.eta');
const detailView = loadView<DetailView>(import.meta.url, './views/delivery.eta');
const replayView = loadView<ReplayView>(import.meta.url, './views/replay.eta');

const PAGE_SIZE = 50;
const STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const MOODS = { pending: '', delivered: 'good', failed: 'bad', cancelled: 'bad' } as const;
const DAY_MS = 24 * 60 * 60_000;

type DeliveryParameters = { id: string; delivery_id: string };

/** Serves the deliveries of a webhook, and sends them again: one by one, or all of a period. */
@Controller('app/stores/:account_id/webhooks/:id')
export class WebhookDeliveriesPageController {
  constructor(
    private readonly commands: FormCommands,
    private readonly webhooks: WebhookSubscriptionsService,
    private readonly deliveries: WebhookDeliveriesService,
    private readonly times: StoreTimes,
  ) {}

  @GetPage('listWebhookDeliveries', 'deliveries')
  async list(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query() query: Record<string, unknown>,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const { t: translations, locale } = localization;
    const t = translations.webhookPages.deliveries;
    const timeZone = await this.times.getTimeZone(store.id);
    const fields = readDeliveryFields(query);
    const after = parseCursor(query['after']);
    const rows = await this.deliveries.list(webhook.id, toDeliveryFilter(fields, timeZone), {
      after,
      limit: PAGE_SIZE + 1,
    });
    const { page, last } = takePage(rows, PAGE_SIZE);
    const lastTest = await this.webhooks.findLastTest(store.id, webhook.id);
    const base = `${buildWebhooksPath(store)}/${webhook.id}/deliveries`;
    const { minute } = createTimeFormats(locale, timeZone);
    const narrowed = Object.entries(fields).filter(([, value]) => value !== '');
    const link = (extra: [string, string][]) =>
      `${base}?${new URLSearchParams([...narrowed, ...extra]).toString()}`;
    return showPage({
      view: listView,
      title: t.title,
      breadcrumb: linkToWebhook(store, webhook),
      data: {
        base,
        fields,
        chips: createFilterChips(base, fields, describeFilters(fields, localization)),
        statuses: STATUSES.map((value) => ({ value, text: t.statuses[value] })),
        events: listEventChoices(localization),
        lines: page.map((delivery) =>
          toLine(delivery, { base, isEnabled: webhook.enabled }, localization, minute),
        ),
        lastTest: renderLastTest(lastTest, localization, minute),
        newest: after === null ? '' : link([]),
        older: last ? link([['after', String(last.id)]]) : '',
      },
    });
  }

  @GetPage('getWebhookDelivery', 'deliveries/:delivery_id')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param() path: DeliveryParameters,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { t } = localization;
    const { redelivered } = t.webhookPages.done;
    const flash = findFlashMessage(done, { redelivered });
    return this.showDelivery(localization, store, path, flash);
  }

  @PostForm('redeliverWebhook', 'deliveries/:delivery_id/redeliver', 30)
  async redeliver(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param() path: DeliveryParameters,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const [id, deliveryId] = [parsePathId(path.id), parsePathId(path.delivery_id)];
    try {
      await this.commands.executeStep(context, 'redeliver', (keyedWriter) =>
        this.deliveries.redeliver(keyedWriter, id, deliveryId),
      );
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showDelivery(localization, store, path, '', errors);
    }
    const base = `${buildWebhooksPath(store)}/${id}/deliveries/${deliveryId}`;
    return redirectTo(`${base}?done=redelivered`);
  }

  @GetPage('replayWebhooks', 'replay')
  async showReplay(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const timeZone = await this.times.getTimeZone(store.id);
    const from = renderLocalTime(new Date(getNowMs() - DAY_MS), timeZone);
    return this.renderReplay(localization, store, path, {
      values: { ...replayForm.toValues({ from }), scope: 'all' },
    });
  }

  @PostForm('replayWebhooks', 'replay', 30)
  async replay(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { id } = await this.webhooks.get(store.id, parsePathId(path));
    const timeZone = await this.times.getTimeZone(store.id);
    const values = { ...replayForm.read(form), scope: form['scope'] ?? 'all' };
    const toTime = (text: string) => parseLocalTime(text, timeZone)?.toISOString() ?? text;
    let replayed: ReplayJson;
    try {
      const body = readFields(ReplayDto, {
        from: toTime(values.from),
        to: values.to === '' ? null : toTime(values.to),
        types: values.scope === 'some' ? values.types : null,
      });
      replayed = await this.commands.executeStep(context, 'replay', (keyedWriter) =>
        this.deliveries.replay(keyedWriter, id, body),
      );
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.renderReplay(localization, store, path, { values, errors });
    }
    return redirectTo(`${buildWebhooksPath(store)}/${id}?replayed=${replayed.matched}`);
  }

  private async showDelivery(
    localization: Localization,
    store: EnteredStore,
    path: DeliveryParameters,
    flash: string,
    errors?: FormErrors,
  ): Promise<PageResult> {
    const [id, deliveryId] = [parsePathId(path.id), parsePathId(path.delivery_id)];
    const delivery = await this.deliveries.get(store.id, id, deliveryId);
    const { enabled } = await this.webhooks.get(store.id, id);
    const { t, locale } = localization;
    const { minute } = await this.times.createFormats(store.id, locale);
    const toTime = (at: string | null) => (at === null ? '' : minute(new Date(at)));
    const list = `${buildWebhooksPath(store)}/${id}/deliveries`;
    return showPage({
      view: detailView,
      title: t.webhookPages.delivery.title,
      breadcrumb: { path: list, text: t.webhookPages.deliveries.title },
      errors,
      data: {
        base: `${list}/${deliveryId}`,
        event: renderEventName(delivery.type, localization),
        id: delivery.event_id,
        created: toTime(delivery.created_at),
        next: toTime(delivery.next_attempt_at),
        delivered: toTime(delivery.delivered_at),
        enabled,
        attempts: renderAttempts(delivery, localization, minute),
        ...describeDelivery(delivery, enabled, localization),
        flash,
      },
    });
  }

  private async renderReplay(
    localization: Localization,
    store: EnteredStore,
    path: string,
    { errors, values }: Rejectable & { values: ReplayFields },
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const t = localization.t.webhookPages.replay;
    const back = `${buildWebhooksPath(store)}/${webhook.id}`;
    return showPage({
      view: replayView,
      title: t.title,
      width: 'form',
      breadcrumb: linkToWebhook(store, webhook),
      errors,
      inputs: { ...replayForm.toInputs(values), scope: { value: values.scope } },
      data: {
        action: `${back}/replay`,
        back,
        about: webhook.target_url,
        zone: t.zone({ timeZone: await this.times.getTimeZone(store.id) }),
        events: listEventChoices(localization),
      },
    });
  }
}

/** Reads the filter; what the form cannot send narrows nothing. */
function readDeliveryFields(query: Record<string, unknown>): Fields {
  const read = (name: string) => {
    const value = query[name];
    return typeof value === 'string' ? value : '';
  };
  const [status, type, from, to] = [read('status'), read('type'), read('from'), read('to')];
  return {
    status: STATUSES.some((candidate) => candidate === status) ? status : '',
    type: PUBLIC_EVENTS.some((candidate) => candidate === type) ? type : '',
    from: isDay(from) ? from : '',
    to: isDay(to) ? to : '',
  };
}

function describeFilters(
  { status, type, from, to }: Fields,
  localization: Localization,
): Record<keyof Fields, string | undefined> {
  const { statuses } = localization.t.webhookPages.deliveries;
  return {
    status: statuses[STATUSES.find((candidate) => candidate === status) ?? 'pending'],
    type: renderEventName(type, localization),
    ...describeDays({ from, to }, localization),
  };
}

function toDeliveryFilter({ status, type, from, to }: Fields, timeZone: string): DeliveryFilter {
  const toTime = (day: string, moment: 'start' | 'next') =>
    day === '' ? null : new Date(findMomentOfDay(day, moment, timeZone));
  return {
    status: STATUSES.find((candidate) => candidate === status) ?? null,
    type: type === '' ? null : (type as PublicEventType),
    from: toTime(from, 'start'),
    to: toTime(to, 'next'),
  };
}

function describeDelivery(
  { status, attempts_count: attempts }: Pick<DeliveryJson, 'status' | 'attempts_count'>,
  isEnabled: boolean,
  { t: { webhookPages: t } }: Localization,
): WebhookState {
  if (status === 'pending' && attempts > 0 && isEnabled)
    return { state: t.deliveries.statuses.retrying, mood: 'warn' };
  return { state: t.deliveries.statuses[status], mood: MOODS[status] };
}

function toLine(
  delivery: DeliveryJson,
  { base, isEnabled }: { base: string; isEnabled: boolean },
  localization: Localization,
  minute: (time: Date) => string,
): Line {
  return {
    path: `${base}/${delivery.id}`,
    event: renderEventName(delivery.type, localization),
    created: minute(new Date(delivery.created_at)),
    attempts: new Intl.NumberFormat(localization.locale).format(delivery.attempts_count),
    ...describeDelivery(delivery, isEnabled, localization),
  };
}
