import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { RejectedError } from '#kernel/errors.js';
import { readBody } from '#http/dtos.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { parsePathId } from '#http/path.js';
import { Throttle } from '#http/throttle.js';
import { isAllowed } from '#identity/roles.js';
import { CreateLocation, DeleteLocation, UpdateLocation } from '#locations/location.commands.js';
import { CreateLocationDto } from '#locations/location.dto.js';
import type { Coordinates } from '#locations/location.events.js';
import type { Location } from '#locations/location.js';
import { LocationsService } from '#locations/locations.service.js';
import { loadAsset } from '#pages/assets.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { findNotice, parseId } from '#pages/page-query.js';
import { Pages } from '#pages/pages.service.js';
import { SubmittedForms } from '#pages/submitted-forms.service.js';
import { loadView } from '#pages/view.js';
import { AddressPlaces } from './address-places.service.js';
import { parseCoordinates } from './coordinates.js';
import { formatDistance, isFar, measureDistance } from './distance.js';
import {
  buildMapUrl,
  describeAction,
  describeMapState,
  getAttribution,
  isExact,
  toLocationLine,
  type LocationFormData,
  type LocationListData,
  type PinData,
} from './location-page.js';

const listView = loadView<LocationListData>(import.meta.url, './views/locations.eta');
const formView = loadView<LocationFormData>(import.meta.url, './views/location.eta');
const SCRIPT = loadAsset(import.meta.url, './assets/pin.js');
const PAGE_SIZE = 50;

/** What a form shows instead of what is stored. */
type FormState = {
  values?: LocationFormData['values'];
  errors?: LocationFormData['errors'];
  errorText?: string;
  pin?: Partial<PinData>;
  done?: unknown;
};

/** Serves the pages on which the locations of a store are added, changed, pinned and removed. */
@Controller('app/stores/:account_id/locations')
export class LocationPagesController {
  constructor(
    private readonly pages: Pages,
    private readonly locations: LocationsService,
    private readonly places: AddressPlaces,
    private readonly commands: CommandBus,
    private readonly forms: SubmittedForms,
    private readonly config: Config,
  ) {}

  @Get()
  @RequiresOperation('listLocations')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() { after, done }: { after?: unknown; done?: unknown },
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { locationPages: t, words } = this.pages.localize(request).t;
    const base = buildLocationsPath(store);
    const rows = await this.locations.listStates(store.id, {
      after: [parseId(after) ?? 0],
      limit: PAGE_SIZE + 1,
    });
    const visible = rows.slice(0, PAGE_SIZE);
    const data = {
      lines: visible.map((location) => toLocationLine(location, base, t)),
      credit: getAttribution(this.config.geocoder, t),
      canAdd: isAllowed(store.role, 'createLocation'),
      base,
      next: rows.length > PAGE_SIZE ? `${base}?after=${visible.at(-1)?.id}` : null,
      done: done === 'removed' ? t.done.removed : '',
    };
    await this.pages.send(request, reply, { view: listView, title: words.locations, data });
  }

  @Get('new')
  @RequiresOperation('createLocation')
  async begin(
    @CurrentStore() store: EnteredStore,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.sendForm(request, reply, store, null, {});
  }

  @Post()
  @TakesForm()
  @RequiresOperation('createLocation')
  @Throttle(60)
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @CurrentUser() { userId }: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { name = '', address = '' } = form;
    try {
      const attributes = parseLocation({ name, address });
      const { id } = await this.forms.executeOnce({ userId, action: 'location', form }, (keyed) =>
        this.commands.execute(
          new CreateLocation({ ...context, keyed }, { ...attributes, pin: null }),
        ),
      );
      await this.pages.redirect(reply, `${buildLocationsPath(store)}/${id}?done=created`);
    } catch (error) {
      const state = { values: { name, address }, ...this.describeRejection(request, error) };
      await this.sendForm(request, reply, store, null, state);
    }
  }

  @Get(':id')
  @RequiresOperation('updateLocation')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const location = await this.locations.getState(store.id, parsePathId(id));
    await this.sendForm(request, reply, store, location, { done });
  }

  @Post(':id')
  @TakesForm()
  @RequiresOperation('updateLocation')
  @Throttle(60)
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() { name = '', address = '' }: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const location = await this.locations.getState(store.id, parsePathId(path));
    try {
      const changes = parseLocation({ name, address });
      await this.commands.execute(new UpdateLocation(context, location.id, changes));
      await this.pages.redirect(reply, `${buildLocationsPath(store)}/${location.id}?done=saved`);
    } catch (error) {
      const state = { values: { name, address }, ...this.describeRejection(request, error) };
      await this.sendForm(request, reply, store, location, state);
    }
  }

  @Post(':id/pin')
  @TakesForm()
  @RequiresOperation('locations.pin')
  @Throttle(60)
  async pin(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() { link = '', latitude = '', longitude = '', sure }: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const location = await this.locations.getState(store.id, parsePathId(path));
    const { t, locale } = this.pages.localize(request);
    const pin =
      link.trim() === '' ? parseCoordinates(latitude, longitude) : parseCoordinates(link, '');
    if (!pin) {
      const state = { link, latitude, longitude, errors: [t.locationPages.errors.place] };
      await this.sendForm(request, reply, store, location, { pin: state });
      return;
    }
    const distance = await this.measure(location, pin);
    if (distance !== null && isFar(distance) && sure === undefined) {
      const question = t.locationPages.far({
        distance: formatDistance(distance, locale),
        address: location.address,
      });
      const entered = { latitude: String(pin.latitude), longitude: String(pin.longitude) };
      await this.sendForm(request, reply, store, location, { pin: { ...entered, question } });
      return;
    }
    await this.commands.execute(new UpdateLocation(context, location.id, { pin }));
    await this.pages.redirect(reply, `${buildLocationsPath(store)}/${location.id}?done=pinned`);
  }

  @Get(':id/unpin')
  @RequiresOperation('locations.pin')
  async askToUnpin(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { id, name, address } = await this.locations.getState(store.id, parsePathId(path));
    const t = this.pages.localize(request).t.locationPages;
    await this.pages.sendConfirmation(request, reply, {
      question: t.removePinAsk,
      about: `${name}, ${address}`,
      text: t.removePinText,
      yes: t.removePinYes,
      no: t.keep,
      action: `${buildLocationsPath(store)}/${id}/unpin`,
      back: `${buildLocationsPath(store)}/${id}`,
    });
  }

  @Post(':id/unpin')
  @TakesForm()
  @RequiresOperation('locations.pin')
  async unpin(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    await this.commands.execute(new UpdateLocation(context, id, { pin: null }));
    await this.pages.redirect(reply, `${buildLocationsPath(store)}/${id}?done=unpinned`);
  }

  @Get(':id/remove')
  @RequiresOperation('deleteLocation')
  async askToRemove(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { id, name, address } = await this.locations.getState(store.id, parsePathId(path));
    const t = this.pages.localize(request).t.locationPages;
    await this.pages.sendConfirmation(request, reply, {
      question: t.removeAsk,
      about: `${name}, ${address}`,
      text: t.removeText,
      yes: t.removeYes,
      no: t.keep,
      action: `${buildLocationsPath(store)}/${id}/remove`,
      back: `${buildLocationsPath(store)}/${id}`,
    });
  }

  @Post(':id/remove')
  @TakesForm()
  @RequiresOperation('deleteLocation')
  async remove(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.commands.execute(new DeleteLocation(context, parsePathId(path)));
    await this.pages.redirect(reply, `${buildLocationsPath(store)}?done=removed`);
  }

  /** Measures how far a pin is from the address, in km. @returns null when the address is not known */
  private async measure(location: Location, pin: Coordinates): Promise<number | null> {
    const place = await this.places.find(location);
    return place ? measureDistance(place, pin) : null;
  }

  /** Words a refusal. @throws every other error */
  private describeRejection(
    request: FastifyRequest,
    error: unknown,
  ): Pick<LocationFormData, 'errors' | 'errorText'> {
    if (!(error instanceof RejectedError)) throw error;
    const { locationPages: t, words } = this.pages.localize(request).t;
    const { name, address } = error.errors;
    return {
      errors: {
        ...(name && { name: [t.errors.name] }),
        ...(address && { address: [t.errors.address] }),
      },
      errorText: error.code === 'limit_reached' ? t.limitReached : words.rejected,
    };
  }

  private async sendForm(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    location: Location | null,
    state: FormState,
  ): Promise<void> {
    const t = this.pages.localize(request).t.locationPages;
    const { values, errors = {}, errorText = '', done } = state;
    const base = buildLocationsPath(store);
    const isRejected = errorText !== '' || state.pin !== undefined;
    await this.pages.send(request, reply, {
      view: formView,
      title: location?.name ?? t.newTitle,
      width: 'form',
      status: isRejected ? 422 : 200,
      scripts: location ? [SCRIPT] : [],
      data: {
        title: location?.name ?? t.newTitle,
        values: values ?? { name: location?.name ?? '', address: location?.address ?? '' },
        errors,
        errorText,
        receipt: this.forms.createReceipt(),
        save: location ? `${base}/${location.id}` : base,
        back: base,
        done: findNotice(done, t.done),
        pin: location && (await this.createPin(request, location, base, state.pin ?? {})),
      },
    });
  }

  private async createPin(
    request: FastifyRequest,
    location: Location,
    base: string,
    entered: Partial<PinData>,
  ): Promise<PinData> {
    const { t, locale } = this.pages.localize(request);
    const path = `${base}/${location.id}`;
    const { latitude, longitude, precision } = location;
    const isPinned = precision === 'manual';
    const hasPin = isPinned && latitude !== null && longitude !== null;
    const distance = hasPin ? await this.measure(location, { latitude, longitude }) : null;
    return {
      ...describeMapState(location, t.locationPages),
      link: '',
      latitude: isExact(location) ? String(latitude) : '',
      longitude: isExact(location) ? String(longitude) : '',
      errors: [],
      isPinned,
      action: describeAction(location, t.locationPages),
      map: buildMapUrl(location),
      save: `${path}/pin`,
      removePin: `${path}/unpin`,
      remove: `${path}/remove`,
      question: '',
      warning:
        distance !== null && isFar(distance)
          ? t.locationPages.farNow({ distance: formatDistance(distance, locale) })
          : '',
      ...entered,
    };
  }
}

/** Parses the fields by the rules of the API. @throws InvalidFieldsError */
function parseLocation(fields: { name: string; address: string }): {
  name: string;
  address: string;
} {
  const { name, address } = readBody(CreateLocationDto, { location: fields });
  return { name, address };
}

function buildLocationsPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/locations`;
}
