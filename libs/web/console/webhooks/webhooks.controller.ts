import { Body, Controller, Param, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { describeRejection } from '#web/pages/form-errors.js';
import { Reauthentication } from '#web/sign-in/reauthentication.service.js';
import {
  CreateWebhookSubscription,
  DeleteWebhookSubscription,
  UpdateWebhookSubscription,
} from '#outbound/subscriptions/webhook-subscription.commands.js';
import {
  CreateWebhookSubscriptionDto,
  toSubscriptionAttributes,
  toSubscriptionChanges,
  UpdateWebhookSubscriptionDto,
  type WebhookSubscriptionSecretJson,
  type WebhookTestJson,
} from '#outbound/subscriptions/webhook-subscription.dto.js';
import { WebhookSubscriptionsService } from '#outbound/subscriptions/webhook-subscriptions.service.js';
import { TestWebhookSubscription } from '#outbound/subscriptions/webhook-test.commands.js';
import { type PageResult, showPage, askToConfirm, redirectTo } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { localizeRequest } from '#web/pages/localize.js';
import { findFlashMessage, parseCursor, takePage } from '#web/pages/page-query.js';
import {
  NO_WEBHOOK_FIELDS,
  readWebhookFields,
  toWebhookBody,
  toWebhookFields,
} from './webhook-form.dto.js';
import {
  buildWebhooksPath,
  describeWebhookState,
  linkToWebhook,
  renderEventCount,
  renderLast,
  renderWebhookName,
  type WebhookState,
} from './webhook-labels.js';
import { WebhookViews, type WebhookFlashName } from './webhook-views.service.js';

type Line = WebhookState & {
  path: string;
  name: string;
  url: string;
  events: string;
  last: string;
};

type ListView = { base: string; lines: Line[]; next: string; first: string; flash: string };

type EnableView = { base: string; about: string; since: string };
const listView = loadView<ListView>(import.meta.url, './views/webhooks.eta');
const enableView = loadView<EnableView>(import.meta.url, './views/enable.eta');

const PAGE_SIZE = 50;

/** Serves the webhooks of a store: list, make, test, pause and delete them. */
@Controller('app/stores/:account_id/webhooks')
export class WebhooksController {
  constructor(
    private readonly commands: FormCommands,
    private readonly webhooks: WebhookSubscriptionsService,
    private readonly views: WebhookViews,
    private readonly times: StoreTimes,
    private readonly reauthentication: Reauthentication,
  ) {}

  @GetPage('listWebhookSubscriptions')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() query: Record<string, unknown>,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const t = localization.t.webhookPages;
    const after = parseCursor(query['after']);
    const rows = await this.webhooks.list(store.id, null, {
      after,
      limit: PAGE_SIZE + 1,
    });
    const { page, last } = takePage(rows, PAGE_SIZE);
    const base = buildWebhooksPath(store);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    return showPage({
      view: listView,
      title: t.list.title,
      data: {
        base,
        lines: page.map((webhook) => ({
          path: `${base}/${webhook.id}`,
          name: renderWebhookName(webhook),
          url: webhook.target_url,
          events: renderEventCount(webhook, localization),
          last: renderLast(webhook, localization, minute),
          ...describeWebhookState(webhook, localization),
        })),
        next: last ? `${base}?after=${last.id}` : '',
        first: after === null ? '' : base,
        flash: findFlashMessage(query['done'], { deleted: t.done.deleted }),
      },
    });
  }

  @GetPage('createWebhookSubscription', 'new')
  async showCreation(
    @CurrentStore() store: EnteredStore,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.views.showForm(localization, store, null, {
      values: NO_WEBHOOK_FIELDS,
    });
  }

  @PostForm('createWebhookSubscription', '', 30)
  async create(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const values = readWebhookFields(form);
    let created: WebhookSubscriptionSecretJson;
    try {
      const body = readFields(CreateWebhookSubscriptionDto, {
        ...toWebhookBody(values),
        signature: values.signature,
      });
      await this.assertPassword(user, form, request);
      created = await this.commands.execute(
        new CreateWebhookSubscription(context, toSubscriptionAttributes(body)),
      );
    } catch (error) {
      const errors = describeRejection(error, localizeRequest(request));
      return this.views.showForm(localizeRequest(request), store, null, { values, errors });
    }
    return this.views.showSecret(localizeRequest(request), store, created, null);
  }

  @GetPage('getWebhookSubscription', ':id')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query() query: Record<string, unknown>,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    return this.views.showWebhook(localization, store, webhook, query);
  }

  @GetPage('updateWebhookSubscription', ':id/edit')
  async showForm(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    return this.views.showForm(localization, store, webhook, {
      values: toWebhookFields(webhook),
    });
  }

  @PostForm('updateWebhookSubscription', ':id/edit', 30)
  async update(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const values = readWebhookFields(form, toWebhookFields(webhook).headers);
    try {
      const body = readFields(UpdateWebhookSubscriptionDto, toWebhookBody(values));
      await this.assertPassword(user, form, request);
      await this.commands.execute(
        new UpdateWebhookSubscription(context, webhook.id, toSubscriptionChanges(body), false),
      );
    } catch (error) {
      const errors = describeRejection(error, localizeRequest(request));
      return this.views.showForm(localizeRequest(request), store, webhook, {
        values,
        errors,
      });
    }
    return this.redirect(store, webhook.id, 'saved');
  }

  @PostForm('updateWebhookSubscription', ':id/pause', 30)
  async pause(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    await this.commands.execute(
      new UpdateWebhookSubscription(context, id, { enabled: false }, false),
    );
    return this.redirect(store, id, 'paused');
  }

  @GetPage('updateWebhookSubscription', ':id/enable')
  async askToEnable(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const { disabled_at: disabledAt } = webhook;
    return showPage({
      view: enableView,
      title: localization.t.webhookPages.enable.title,
      width: 'form',
      breadcrumb: linkToWebhook(store, webhook),
      data: {
        base: `${buildWebhooksPath(store)}/${webhook.id}`,
        about: webhook.target_url,
        since: disabledAt === null ? '' : minute(new Date(disabledAt)),
      },
    });
  }

  @PostForm('updateWebhookSubscription', ':id/enable', 30)
  async enable(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    const replaysMissed = form['replay_missed'] === 'yes';
    try {
      await this.commands.execute(
        new UpdateWebhookSubscription(context, id, { enabled: true }, replaysMissed),
      );
    } catch (error) {
      return this.views.showRejection(localization, store, id, error);
    }
    return this.redirect(store, id, replaysMissed ? 'enabledMissed' : 'enabled');
  }

  @PostForm('testWebhookSubscription', ':id/test', 30)
  async test(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    let result: WebhookTestJson;
    try {
      result = await this.commands.execute(new TestWebhookSubscription(context, id));
    } catch (error) {
      return this.views.showRejection(localization, store, id, error);
    }
    return this.redirect(store, id, result.delivered ? 'tested' : 'testFailed');
  }

  @GetPage('deleteWebhookSubscription', ':id/delete')
  async askToDelete(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const { title, text, yes, no } = localization.t.webhookPages.delete;
    const base = `${buildWebhooksPath(store)}/${webhook.id}`;
    return askToConfirm({
      question: title,
      about: webhook.target_url,
      text,
      yes,
      no,
      back: base,
    });
  }

  @PostForm('deleteWebhookSubscription', ':id/delete', 30)
  async remove(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
  ): Promise<PageResult> {
    await this.commands.execute(new DeleteWebhookSubscription(context, parsePathId(path)));
    return redirectTo(`${buildWebhooksPath(store)}?done=deleted`);
  }

  /** Asserts the password: whoever sets a webhook's address receives what happens in the store from then on. */
  private assertPassword(user: SignedInUser, form: Form, request: FastifyRequest): Promise<void> {
    const field = 'current_password';
    return this.reauthentication.assertPassword(user, form[field], field, request);
  }

  private redirect(store: EnteredStore, id: number, done: WebhookFlashName): PageResult {
    return redirectTo(`${buildWebhooksPath(store)}/${id}?done=${done}`);
  }
}
