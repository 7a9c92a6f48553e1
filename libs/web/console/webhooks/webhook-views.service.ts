import { Injectable } from '@nestjs/common';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { LocationsService } from '#loyalty/locations/locations.service.js';
import type { EnteredStore } from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { linkToEntry } from '#web/pages/navigation.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import type { ValuesOf } from '#web/pages/forms.js';
import { describeRejection, type FormErrors, type Rejectable } from '#web/pages/form-errors.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { SIGNATURES } from '#outbound/sending/webhook-signature.js';
import type {
  WebhookSubscriptionJson,
  WebhookSubscriptionSecretJson,
} from '#outbound/subscriptions/webhook-subscription.dto.js';
import { WebhookSubscriptionsService } from '#outbound/subscriptions/webhook-subscriptions.service.js';
import type { Localization } from '#translations/translations.js';
import { TestsRunningError } from '#outbound/subscriptions/webhook-test.commands.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import { rotationForm, webhookForm, type WebhookFields } from './webhook-form.dto.js';
import {
  buildWebhooksPath,
  describeWebhookState,
  linkToWebhook,
  listEventChoices,
  renderEventName,
  renderLast,
  renderLastTest,
  renderWebhookName,
  type Choices,
  type WebhookState,
} from './webhook-labels.js';

type FormView = {
  heading: string;
  action: string;
  back: string;
  submit: string;
  events: Choices;
  cards: Choices;
  locations: Choices;
  /** Empty for an existing webhook, which changes its signature together with its secret. */
  signatures: Choices;
};

type SecretView = {
  title: string;
  secret: string;
  publicKey: string;
  until: string;
  next: string;
};

type ShowView = WebhookState & {
  base: string;
  name: string;
  url: string;
  reason: string;
  flash: string;
  isFailure: boolean;
  enabled: boolean;
  events: string[];
  format: string;
  headers: string[];
  cards: string[] | null;
  locations: string[] | null;
  personal: boolean;
  signature: string;
  publicKey: string;
  last: string;
  lastTest: string;
  created: string;
};

type RotateView = {
  base: string;
  about: string;
  graces: Choices;
  signatures: Choices;
};

const formView = loadView<FormView>(import.meta.url, './views/webhook-form.eta');
const secretView = loadView<SecretView>(import.meta.url, './views/secret.eta');
const showView = loadView<ShowView>(import.meta.url, './views/webhook.eta');
const rotateView = loadView<RotateView>(import.meta.url, './views/rotate.eta');

/** More than a store has, and little enough for a form. */
const MAX_CHOICES = 250;
const GRACES = ['0', '3600', '86400', '604800'] as const;
/** The results of forms that the page of a webhook tells of. */
export type WebhookFlashName = keyof Localization['t']['webhookPages']['done'];

/** Renders the pages about one webhook. */
@Injectable()
export class WebhookViews {
  constructor(
    private readonly webhooks: WebhookSubscriptionsService,
    private readonly cards: CardsService,
    private readonly locations: LocationsService,
    private readonly times: StoreTimes,
  ) {}

  /** Sends the page of a webhook with why a command was rejected. @throws every other error */
  async showRejection(
    localization: Localization,
    store: EnteredStore,
    id: number,
    error: unknown,
  ): Promise<PageResult> {
    const errors =
      error instanceof TestsRunningError
        ? { fields: {}, text: localization.t.webhookPages.testsRunning }
        : describeRejection(error, localization);
    const webhook = await this.webhooks.get(store.id, id);
    return this.showWebhook(localization, store, webhook, {}, errors);
  }

  async showWebhook(
    localization: Localization,
    store: EnteredStore,
    webhook: WebhookSubscriptionSecretJson,
    query: Record<string, unknown>,
    errors?: FormErrors,
  ): Promise<PageResult> {
    const t = localization.t.webhookPages;
    const title = renderWebhookName(webhook);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const [cards, locations] = await this.listChoices(store);
    const lastTest = await this.webhooks.findLastTest(store.id, webhook.id);
    const name = (choices: Choices, ids: number[] | null) =>
      ids?.map((id) => choices.find(({ value }) => value === String(id))?.text ?? String(id)) ??
      null;
    const flash = findFlashMessage(query['done'], t.done, title);
    const replayed = /^\d{1,12}$/.test(String(query['replayed']))
      ? Number(query['replayed'])
      : null;
    return showPage({
      view: showView,
      title,
      errors,
      data: {
        base: `${buildWebhooksPath(store)}/${webhook.id}`,
        name: title,
        url: webhook.target_url,
        reason: webhook.disabled_reason === null ? '' : t.reasons[webhook.disabled_reason],
        flash: replayed === null ? flash : t.replayed({ count: replayed }),
        isFailure: query['done'] === 'testFailed',
        enabled: webhook.enabled,
        events: webhook.events.map((event) => renderEventName(event, localization)),
        format: t.form.formats[webhook.payload_format],
        headers: Object.keys(webhook.headers),
        cards: name(cards, webhook.card_ids),
        locations: name(locations, webhook.location_ids),
        personal: webhook.personal_data,
        signature: t.form.signatures[webhook.signature],
        publicKey: webhook.public_key ?? '',
        last: renderLast(webhook, localization, minute),
        lastTest: renderLastTest(lastTest, localization, minute),
        created: minute(new Date(webhook.created_at)),
        ...describeWebhookState(webhook, localization),
      },
    });
  }

  async showForm(
    localization: Localization,
    store: EnteredStore,
    webhook: WebhookSubscriptionJson | null,
    { errors, values }: Rejectable & { values: WebhookFields },
  ): Promise<PageResult> {
    const t = localization.t.webhookPages.form;
    const [cards, locations] = await this.listChoices(store);
    const base = buildWebhooksPath(store);
    const heading = webhook === null ? t.addTitle : t.editTitle;
    return showPage({
      view: formView,
      title: heading,
      width: 'form',
      breadcrumb: webhook
        ? linkToWebhook(store, webhook)
        : linkToEntry(store, 'webhooks', localization.t),
      errors,
      inputs: {
        ...webhookForm.toInputs(values),
        scope: { value: values.scope },
        headers: { value: values.headers },
      },
      data: {
        heading,
        action: webhook === null ? base : `${base}/${webhook.id}/edit`,
        back: webhook === null ? base : `${base}/${webhook.id}`,
        submit: webhook === null ? t.add : localization.t.words.save,
        events: listEventChoices(localization),
        cards,
        locations,
        signatures:
          webhook === null ? SIGNATURES.map((value) => ({ value, text: t.signatures[value] })) : [],
      },
    });
  }

  async showRotation(
    localization: Localization,
    store: EnteredStore,
    webhook: WebhookSubscriptionJson,
    { errors, values }: Rejectable & { values: ValuesOf<typeof rotationForm> },
  ): Promise<PageResult> {
    const t = localization.t.webhookPages;
    return showPage({
      view: rotateView,
      title: t.rotate.title,
      width: 'form',
      breadcrumb: linkToWebhook(store, webhook),
      errors,
      inputs: rotationForm.toInputs(values),
      data: {
        base: `${buildWebhooksPath(store)}/${webhook.id}`,
        about: webhook.target_url,
        graces: GRACES.map((value) => ({ value, text: t.rotate.graces[value] })),
        signatures: SIGNATURES.map((value) => ({ value, text: t.form.signatures[value] })),
      },
    });
  }

  /** Sends the page with a new secret, in this response, because a redirect would require storing it. */
  async showSecret(
    localization: Localization,
    store: EnteredStore,
    { id, secret, public_key: publicKey }: WebhookSubscriptionSecretJson,
    until: Date | null,
  ): Promise<PageResult> {
    const t = localization.t.webhookPages.secret;
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const title = secret === '' ? t.publicTitle : t.title;
    return showPage({
      view: secretView,
      title,
      width: 'form',
      data: {
        title,
        secret,
        publicKey: publicKey ?? '',
        until: until === null ? '' : t.until({ when: minute(until) }),
        next: `${buildWebhooksPath(store)}/${id}`,
      },
    });
  }

  private async listChoices({ id }: EnteredStore): Promise<[Choices, Choices]> {
    const [cards, locations] = await Promise.all([
      this.cards.list(
        id,
        { scope: 'all', updatedSince: null },
        { after: null, limit: MAX_CHOICES },
      ),
      this.locations.listStates(id, { after: null, limit: MAX_CHOICES, updatedSince: null }),
    ]);
    return [cards, locations].map((records) =>
      records.map((record) => ({ value: String(record.id), text: record.name })),
    ) as [Choices, Choices];
  }
}
