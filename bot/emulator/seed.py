"""The two workspaces every local Slack starts with, and an organization for those that ask for one."""

from bot.emulator.config import EmulatorConfig
from bot.emulator.workspace import Channel, Installation, Organization, User, Workspace


def northwind(config: EmulatorConfig) -> Workspace:
    """Northwind Outdoors: three people on three continents, so that "last week" is not the same week for all of them."""
    team = "T0NORTHWIND"
    workspace = Workspace(team, "Northwind Outdoors", "northwind-outdoors", "U0THREADLINE", "B0THREADLINE")
    ada = User("U0ADA", team, "ada", "Ada Keller", "Europe/Berlin", is_admin=True, title="Head of Growth")
    ben = User("U0BEN", team, "ben", "Ben Carter", "America/New_York", title="Campaign Manager")
    chloe = User("U0CHLOE", team, "chloe", "Chloe Tanaka", "Asia/Tokyo", title="Email Marketing")
    people = [ada.id, ben.id, chloe.id]
    _add_users(workspace, config, ada, ben, chloe)
    _add_channels(
        workspace,
        Channel("C0CAMPAIGNS", team, "campaigns", "channel", [*people], "Budgets, launches and results"),
        Channel("C0GENERAL", team, "general", "channel", [*people], "Announcements for everyone"),
        Channel("C0RANDOM", team, "random", "channel", [*people], "Trails, tents and other things"),
        Channel("G0PLANNING", team, "planning", "group", [ada.id, ben.id], "Next quarter, before it is public"),
    )
    if config.connect:
        members = [ada.id, ben.id, "U0DANA"]
        partners = Channel(
            "C0PARTNERS", team, "partners", "channel", members, "With Harbor Coffee", shared_with=["T0HARBOR"]
        )
        workspace.channels[partners.id] = partners
    if config.bot_token:
        install(workspace, config.bot_token, scopes=config.scopes, installer_id=ada.id)
    return workspace


def harbor(config: EmulatorConfig) -> Workspace:
    """Harbor Coffee: a second customer without the app, to install it by OAuth."""
    team = "T0HARBOR"
    workspace = Workspace(team, "Harbor Coffee", "harbor-coffee", "U0THREADHARBOR", "B0THREADHARBOR")
    dana = User("U0DANA", team, "dana", "Dana Ruiz", "America/Los_Angeles", is_admin=True, title="Owner")
    eli = User("U0ELI", team, "eli", "Eli Moore", "Australia/Sydney", title="Marketing")
    _add_users(workspace, config, dana, eli)
    _add_channels(
        workspace,
        Channel("C0HARBORGENERAL", team, "general", "channel", [dana.id, eli.id], "Everything Harbor"),
        Channel("C0HARBORADS", team, "ads", "channel", [dana.id, eli.id], "Paid search and social"),
    )
    return workspace


def meridian(config: EmulatorConfig) -> tuple[Workspace, Workspace]:
    """Meridian Group: an organization of two workspaces, whose bot user is the same in both."""
    org = Organization("E0MERIDIAN", "Meridian Group")
    europe = Workspace(
        "T0MERIDIANEU", "Meridian Europe", "meridian-europe", "U0THREADMERIDIAN", "B0THREADMERIDIAN", org=org
    )
    asia = Workspace("T0MERIDIANAS", "Meridian Asia", "meridian-asia", "U0THREADMERIDIAN", "B0THREADMERIDIAN", org=org)
    noor = User("U0NOOR", europe.id, "noor", "Noor Haddad", "Europe/Paris", is_admin=True, title="Marketing Director")
    kenji = User("U0KENJI", asia.id, "kenji", "Kenji Mori", "Asia/Tokyo", is_admin=True, title="Performance Marketing")
    for workspace, person, name in ((europe, noor, "launches"), (asia, kenji, "performance")):
        _add_users(workspace, config, person)
        _add_channels(workspace, Channel(f"C0MERIDIAN{name.upper()}", workspace.id, name, "channel", [person.id], ""))
    return europe, asia


def install(workspace: Workspace, token: str, *, scopes: tuple[str, ...], installer_id: str) -> Installation:
    """Put the app into `workspace`: it joins the first two channels and opens a direct message with everybody."""
    made = Installation(workspace.id, token, workspace.bot_user_id, workspace.bot_id, scopes, installer_id)
    return _moved_in(workspace, made)


def install_in_org(
    workspaces: list[Workspace], token: str, *, scopes: tuple[str, ...], installer_id: str
) -> Installation:
    """Put the app into every one of an organization's `workspaces`, under one token."""
    first = workspaces[0]
    assert first.org is not None
    made = Installation("", token, first.bot_user_id, first.bot_id, scopes, installer_id, org_id=first.org.id)
    for workspace in workspaces:
        _moved_in(workspace, made)
    return made


def _moved_in(workspace: Workspace, installation: Installation) -> Installation:
    workspace.installation = installation
    public = [channel for channel in workspace.channels.values() if channel.kind == "channel"]
    for channel in (*public[:2], *(each for each in public[2:] if each.shared_with)):
        if workspace.bot_user_id not in channel.members:
            channel.members.append(workspace.bot_user_id)
    for person in workspace.people:
        workspace.direct_message(person.id)
    return installation


def _add_users(workspace: Workspace, config: EmulatorConfig, *people: User) -> None:
    bot = User(workspace.bot_user_id, workspace.id, config.app_name.lower(), config.app_name, "Etc/UTC", is_bot=True)
    workspace.users = {user.id: user for user in (*people, bot)}


def _add_channels(workspace: Workspace, *channels: Channel) -> None:
    workspace.channels = {channel.id: channel for channel in channels}
