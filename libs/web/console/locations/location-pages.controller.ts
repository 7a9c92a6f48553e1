import { Body, Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { isAllowed } from '#identity/roles.js';
import {
  CreateLocation,
  DeleteLocation,
  UpdateLocation,
} from '#loyalty/locations/location.commands.js';
import {
  CreateLocationDto,
  toLocationAttributes,
  UpdateLocationDto,
} from '#loyalty/locations/location.dto.js';
import type { Coordinates } from '#loyalty/locations/location.events.js';
import { isPrecise, type Location } from '#loyalty/locations/location.js';
import { LocationsService } from '#loyalty/locations/locations.service.js';
import { loadAsset } from '#web/pages/assets.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { findFlashMessage, parseCursor, takePage } from '#web/pages/page-query.js';
import { linkToEntry } from '#web/pages/navigation.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, showPage, redirectTo, askToConfirm } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { AddressPlaces } from './address-places.service.js';
import { parseCoordinates } from './coordinates.js';
import { formatDistance, isFar, measureDistance } from './distance.js';
import {
  buildMapUrl,
  describeAction,
  describeMapState,
  getAttribution,
  toLocationLine,
  type LocationFormData,
  type LocationListData,
  type PinData,
} from './location-page.js';

const listView = loadView<LocationListData>(import.meta.url, './views/locations.eta');
const formView = loadView<LocationFormData>(import.meta.url, './views/location.eta');
const SCRIPT = loadAsset(import.meta.url, './assets/pin.js');
const PAGE_SIZE = 50;

const locationForm = defineForm(CreateLocationDto, ['name', 'address']);

/** What a form shows instead of what is stored. */
type FormState = Rejectable & {
  values?: ValuesOf<typeof locationForm>;
  pin?: Partial<PinData>;
  done?: unknown;
};

/** Serves the pages on which the locations of a store are added, changed, pinned and removed. */
@Controller('app/stores/:account_id/locations')
export class LocationPagesController {
  constructor(
    private readonly locations: LocationsService,
    private readonly places: AddressPlaces,
    private readonly commands: FormCommands,
    private readonly config: Config,
  ) {}

  @GetPage('listLocations')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() { after, done }: { after?: unknown; done?: unknown },
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { locationPages: t, words } = localization.t;
    const base = buildLocationsPath(store);
    const rows = await this.locations.listStates(store.id, {
      after: parseCursor(after),
      limit: PAGE_SIZE + 1,
    });
    const { page, last } = takePage(rows, PAGE_SIZE);
    const data = {
      about: this.config.hasWallet ? t.about : localization.t.overview.locationWithoutWallets,
      noneWhy: this.config.hasWallet ? t.noneWhy : '',
      lines: page.map((location) => toLocationLine(location, base, t)),
      credit: getAttribution(this.config.geocoder, t),
      canAdd: isAllowed(store.role, 'createLocation'),
      base,
      next: last ? `${base}?after=${last.id}` : null,
      flash: findFlashMessage(done, { removed: t.done.removed }),
    };
    return showPage({ view: listView, title: words.locations, data });
  }

  @GetPage('createLocation', 'new')
  async begin(
    @CurrentStore() store: EnteredStore,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.showForm(localization, store, null, {});
  }

  @PostForm('createLocation')
  async create(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const values = locationForm.read(form);
    try {
      const attributes = toLocationAttributes(readFields(CreateLocationDto, values));
      const { id } = await this.commands.execute(new CreateLocation(context, attributes));
      return redirectTo(`${buildLocationsPath(store)}/${id}?done=created`);
    } catch (error) {
      const state = { values, errors: describeRejection(error, localization) };
      return this.showForm(localization, store, null, state);
    }
  }

  @GetPage('updateLocation', ':id')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const location = await this.locations.getState(store.id, parsePathId(id));
    return this.showForm(localization, store, location, { done });
  }

  @PostForm('updateLocation', ':id')
  async save(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() form: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const location = await this.locations.getState(store.id, parsePathId(path));
    const values = locationForm.read(form);
    try {
      const changes = toLocationAttributes(readFields(UpdateLocationDto, values));
      await this.commands.execute(new UpdateLocation(context, location.id, changes));
      return redirectTo(`${buildLocationsPath(store)}/${location.id}?done=saved`);
    } catch (error) {
      const state = { values, errors: describeRejection(error, localization) };
      return this.showForm(localization, store, location, state);
    }
  }

  @PostForm('locations.pin', ':id/pin')
  async pin(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() { link = '', latitude = '', longitude = '', sure }: Form,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const location = await this.locations.getState(store.id, parsePathId(path));
    const { t, locale } = localization;
    const pin =
      link.trim() === '' ? parseCoordinates(latitude, longitude) : parseCoordinates(link, '');
    if (!pin) {
      const state = { link, latitude, longitude, errors: [t.locationPages.errors.place] };
      return this.showForm(localization, store, location, { pin: state });
    }
    const distance = await this.measure(location, pin);
    if (distance !== null && isFar(distance) && sure === undefined) {
      const question = t.locationPages.far({
        distance: formatDistance(distance, locale),
        address: location.address,
      });
      const entered = { latitude: String(pin.latitude), longitude: String(pin.longitude) };
      return this.showForm(localization, store, location, { pin: { ...entered, question } });
    }
    await this.commands.execute(new UpdateLocation(context, location.id, { pin }));
    return redirectTo(`${buildLocationsPath(store)}/${location.id}?done=pinned`);
  }

  @GetPage('locations.pin', ':id/unpin')
  async askToUnpin(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { id, name, address } = await this.locations.getState(store.id, parsePathId(path));
    const t = localization.t.locationPages;
    return askToConfirm({
      question: t.removePinAsk,
      about: `${name}, ${address}`,
      text: t.removePinText,
      yes: t.removePinYes,
      no: t.keep,
      back: `${buildLocationsPath(store)}/${id}`,
    });
  }

  @PostForm('locations.pin', ':id/unpin')
  async unpin(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    const id = parsePathId(path);
    await this.commands.execute(new UpdateLocation(context, id, { pin: null }));
    return redirectTo(`${buildLocationsPath(store)}/${id}?done=unpinned`);
  }

  @GetPage('deleteLocation', ':id/remove')
  async askToRemove(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { id, name, address } = await this.locations.getState(store.id, parsePathId(path));
    const t = localization.t.locationPages;
    return askToConfirm({
      question: t.removeAsk,
      about: `${name}, ${address}`,
      text: t.removeText,
      yes: t.removeYes,
      no: t.keep,
      back: `${buildLocationsPath(store)}/${id}`,
    });
  }

  @PostForm('deleteLocation', ':id/remove')
  async remove(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
  ): Promise<PageResult> {
    await this.commands.execute(new DeleteLocation(context, parsePathId(path)));
    return redirectTo(`${buildLocationsPath(store)}?done=removed`);
  }

  /** Measures how far a pin is from the address, in km. @returns null when the address is not known */
  private async measure(location: Location, pin: Coordinates): Promise<number | null> {
    const place = await this.places.find(location);
    return place ? measureDistance(place, pin) : null;
  }

  private async showForm(
    localization: Localization,
    store: EnteredStore,
    location: Location | null,
    state: FormState,
  ): Promise<PageResult> {
    const t = localization.t.locationPages;
    const { values, errors, done } = state;
    const base = buildLocationsPath(store);
    return showPage({
      view: formView,
      title: location?.name ?? t.newTitle,
      breadcrumb: linkToEntry(store, 'locations', localization.t),
      width: 'form',
      errors,
      inputs: locationForm.toInputs(values ?? locationForm.toValues(location ?? {})),
      status: errors || state.pin ? 422 : 200,
      scripts: location ? [SCRIPT] : [],
      data: {
        title: location?.name ?? t.newTitle,
        save: location ? `${base}/${location.id}` : base,
        flash: findFlashMessage(done, t.done, location?.name),
        pin: location && (await this.createPin(localization, location, base, state.pin ?? {})),
      },
    });
  }

  private async createPin(
    localization: Localization,
    location: Location,
    base: string,
    entered: Partial<PinData>,
  ): Promise<PinData> {
    const { t, locale } = localization;
    const path = `${base}/${location.id}`;
    const { latitude, longitude, precision } = location;
    const isPinned = precision === 'manual';
    const hasPin = isPinned && latitude !== null && longitude !== null;
    const distance = hasPin ? await this.measure(location, { latitude, longitude }) : null;
    return {
      ...describeMapState(location, t.locationPages),
      link: '',
      latitude: isPrecise(precision) ? String(latitude) : '',
      longitude: isPrecise(precision) ? String(longitude) : '',
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

function buildLocationsPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/locations`;
}
