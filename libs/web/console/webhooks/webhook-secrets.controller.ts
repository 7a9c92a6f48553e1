import { Body, Controller, Param, Req } from '@nestjs/common';
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
import { describeRejection } from '#web/pages/form-errors.js';
import { Reauthentication } from '#web/sign-in/reauthentication.service.js';
import { RotateWebhookSecret } from '#outbound/subscriptions/webhook-subscription.commands.js';
import {
  RotateSecretDto,
  type WebhookSubscriptionSecretJson,
} from '#outbound/subscriptions/webhook-subscription.dto.js';
import { WebhookSubscriptionsService } from '#outbound/subscriptions/webhook-subscriptions.service.js';
import type { PageResult } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { localizeRequest } from '#web/pages/localize.js';
import { rotationForm } from './webhook-form.dto.js';
import { WebhookViews } from './webhook-views.service.js';

const DAY_SECONDS = 24 * 60 * 60;

/** Serves the page that changes the signing secret of a webhook, which it shows once. */
@Controller('app/stores/:account_id/webhooks/:id/rotate')
export class WebhookSecretsPageController {
  constructor(
    private readonly commands: FormCommands,
    private readonly webhooks: WebhookSubscriptionsService,
    private readonly views: WebhookViews,
    private readonly reauthentication: Reauthentication,
  ) {}

  @GetPage('rotateWebhookSecret')
  async askToRotate(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const values = rotationForm.toValues({ grace_seconds: DAY_SECONDS, ...webhook });
    return this.views.showRotation(localization, store, webhook, { values });
  }

  @PostForm('rotateWebhookSecret', '', 30)
  async rotate(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const values = rotationForm.read(form);
    let rotated: WebhookSubscriptionSecretJson;
    let grace: number;
    try {
      const body = readFields(RotateSecretDto, values);
      grace = body.grace_seconds;
      const field = 'current_password';
      await this.reauthentication.assertPassword(user, form[field], field, request);
      rotated = await this.commands.execute(
        new RotateWebhookSecret(context, webhook.id, grace, body.signature),
      );
    } catch (error) {
      const errors = describeRejection(error, localizeRequest(request));
      return this.views.showRotation(localizeRequest(request), store, webhook, { values, errors });
    }
    const until = grace === 0 ? null : new Date(Date.parse(rotated.updated_at) + grace * 1_000);
    return this.views.showSecret(localizeRequest(request), store, rotated, until);
  }
}
